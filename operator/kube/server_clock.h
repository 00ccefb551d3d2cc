// SPDX-License-Identifier: Apache-2.0
// The API server's time, estimated from its answers. All times that the operator writes into
// objects or compares with them (start and completion, time to live, deadlines, leases, events) are
// the server's, since the clocks of successive operators may differ.
//
// The Date field has a resolution of one second and was taken between request and answer: so each
// answer bounds the difference between the server's clock and this machine's monotonic one. The
// bounds of all answers are intersected, and widened with time for drift. An answer outside the
// bounds means that the server's clock was set (or that another server answers): the earlier bounds
// are dropped then.
//
// Now and SleepFor are those of the machine. Until the first answer Wall is, too. Thread-safe.
#pragma once

#include <mutex>
#include <optional>

#include "common/base/clock.h"

namespace lambdadnn {

class ServerClock final : public Clock {
 public:
  // `own` outlives it.
  explicit ServerClock(Clock& own) : own_(own) {}

  Instant Now() override { return own_.Now(); }
  WallTime Wall() override;
  void SleepFor(Duration duration) override { own_.SleepFor(duration); }

  // An answer with this Date to a request that was sent and answered then.
  void Observe(WallTime date, Instant sent, Instant received);
  // How far this machine's wall clock is ahead of the server's; absent = no answer yet.
  std::optional<Duration> OwnAhead();

 private:
  // Of the server's wall time minus the monotonic one.
  struct Bounds {
    Duration low{};
    Duration high{};
  };
  std::optional<Duration> Middle();

  Clock& own_;
  std::mutex mutex_;
  std::optional<Bounds> bounds_;
  Instant observed_{};
};

}  // namespace lambdadnn
