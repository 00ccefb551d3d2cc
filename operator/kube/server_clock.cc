// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/server_clock.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// An upper bound for two clocks without NTP.
constexpr double kDrift = 5e-4;
// A Date is cut off to whole seconds.
constexpr Duration kDateStep = std::chrono::seconds(1);

}  // namespace

void ServerClock::Observe(WallTime date, Instant sent, Instant received) {
  const Bounds told{date.time_since_epoch() - received.time_since_epoch(),
                    date.time_since_epoch() + kDateStep - sent.time_since_epoch()};
  const std::lock_guard lock(mutex_);
  if (bounds_.has_value()) {
    // Answers may be handed in out of their order.
    const Duration passed = std::max(Duration::zero(), received - observed_);
    const Duration drift = FromSeconds(ToSeconds(passed) * kDrift);
    const Bounds both{std::max(bounds_->low - drift, told.low),
                      std::min(bounds_->high + drift, told.high)};
    bounds_ = both.low <= both.high ? both : told;
  } else {
    bounds_ = told;
  }
  observed_ = std::max(observed_, received);
}

std::optional<Duration> ServerClock::Middle() {
  const std::lock_guard lock(mutex_);
  if (!bounds_.has_value()) return std::nullopt;
  return bounds_->low + (bounds_->high - bounds_->low) / 2;
}

WallTime ServerClock::Wall() {
  const std::optional<Duration> offset = Middle();
  return offset.has_value() ? WallTime(own_.Now().time_since_epoch() + *offset) : own_.Wall();
}

std::optional<Duration> ServerClock::OwnAhead() {
  const std::optional<Duration> offset = Middle();
  if (!offset.has_value()) return std::nullopt;
  return own_.Wall() - WallTime(own_.Now().time_since_epoch() + *offset);
}

}  // namespace lambdadnn
