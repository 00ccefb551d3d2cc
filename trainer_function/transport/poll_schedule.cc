// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/poll_schedule.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// Begin asking this much before the expected time, as a share of it.
constexpr double kEarly = 0.08;
// Gap around the expected time, as a share of it: from kEarly before to kLate after that is
// (0.08 + 0.2) / 0.02 = 14 questions, fewer than the growing gaps ask before the expected time.
constexpr double kNearGap = 0.02;
constexpr double kLate = 0.2;

Duration Share(Duration duration, double share) {
  return std::chrono::duration_cast<Duration>(duration * share);
}

}  // namespace

Duration ArrivalEstimate::expected() const {
  if (observed_ < kLeastObserved) return Duration::zero();
  return *std::min_element(arrivals_.begin(), arrivals_.begin() + std::min(observed_, kWindow));
}

Duration ArrivalEstimate::FirstPoll() const {
  // Below a few gaps there is nothing to gain from waiting.
  const Duration expected = this->expected();
  if (expected < 4 * kMinPollGap) return Duration::zero();
  return Share(expected, 1 - kEarly);
}

void ArrivalEstimate::Observe(std::optional<Duration> last_miss, Duration hit) {
  // Found at the first request, it may have arrived at any time before.
  const Duration came = last_miss.value_or(Duration::zero());
  arrivals_[observed_ % kWindow] = came + (hit - came) / 2;
  ++observed_;
}

Duration NextPollGap(Duration waited, Duration expected) {
  const bool near =
      waited >= Share(expected, 1 - 2 * kEarly) && waited <= Share(expected, 1 + kLate);
  const Duration gap = near ? Share(expected, kNearGap) : Share(waited, kPollGrowth);
  return std::max(gap, kMinPollGap);
}

Duration NextHintedGap(Duration waited) { return std::max(waited, kMinHintedGap); }

}  // namespace lambdadnn
