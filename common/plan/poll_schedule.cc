// SPDX-License-Identifier: Apache-2.0
#include "common/plan/poll_schedule.h"

#include <algorithm>
#include <cmath>

#include "common/base/statistics.h"

namespace lambdadnn {
namespace {

// Begin asking this much before the expected time, as a share of it.
constexpr double kEarly = 0.08;
// Least gap around the expected time, as a share of it: from kEarly before to kLate after that is
// (0.08 + 0.2) / 0.02 = 14 questions, fewer than the growing gaps ask before the expected time.
constexpr double kNearGap = 0.02;
constexpr double kLate = 0.2;
// With objects that come anywhere from kEarly before to kLate after the expected time, gaps of
// sqrt(2 x 0.28) of the root lose least if a miss delays this function by all that it takes. Less,
// since it may take no more of its CPU than a part of that.
constexpr double kGapOfRoot = 0.5;

Duration Share(Duration duration, double share) {
  return std::chrono::duration_cast<Duration>(duration * share);
}

}  // namespace

Duration ArrivalEstimate::expected() const {
  if (observed_ < kLeastObserved) return Duration::zero();
  return *std::min_element(arrivals_.begin(), arrivals_.begin() + std::min(observed_, kWindow));
}

Duration ArrivalEstimate::latest() const {
  const auto end = arrivals_.begin() + std::min(observed_, kWindow);
  return observed_ == 0 ? Duration::zero() : *std::max_element(arrivals_.begin(), end);
}

Duration ArrivalEstimate::FirstPoll() const {
  // Below a few gaps there is nothing to gain from waiting.
  const Duration expected = this->expected();
  if (expected < 4 * kMinPollGap) return Duration::zero();
  return at_once_ ? expected / 2 : Share(expected, 1 - kEarly);
}

void ArrivalEstimate::Observe(std::optional<Duration> last_miss, Duration hit) {
  const Duration not_there = last_miss.value_or(hit);
  arrivals_[observed_ % kWindow] = not_there + (hit - not_there) / 2;
  ++observed_;
  at_once_ = !last_miss.has_value();
}

Duration NextPollGap(Duration waited, Duration expected, Duration miss) {
  const Duration growing = Share(waited, kPollGrowth);
  if (waited < Share(expected, 1 - 2 * kEarly) || waited > Share(expected, 1 + kLate)) {
    return std::max(growing, kMinPollGap);
  }
  const Duration root = FromSeconds(kGapOfRoot * std::sqrt(ToSeconds(expected) * ToSeconds(miss)));
  return std::max({Share(expected, kNearGap), std::min(root, growing), kMinPollGap});
}

double ExpectedMisses(double expected_seconds, double deviation_seconds, double miss_seconds) {
  const double root = kGapOfRoot * std::sqrt(expected_seconds * miss_seconds);
  const double gap =
      std::max({kNearGap * expected_seconds, std::min(root, kPollGrowth * expected_seconds),
                ToSeconds(kMinPollGap)});
  const double earliest =
      deviation_seconds * ExpectedLargest(static_cast<double>(ArrivalEstimate::kWindow));
  return 1 + (kEarly * expected_seconds + earliest) / (gap + miss_seconds);
}

Duration NextHintedGap(Duration waited) { return std::max(waited, kMinHintedGap); }

Duration FirstRungPoll(Duration latest) { return std::max(2 * latest, kMinRungGap); }

Duration NextRungGap(Duration waited) { return std::max(waited, kMinRungGap); }

}  // namespace lambdadnn
