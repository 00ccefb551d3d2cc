// SPDX-License-Identifier: Apache-2.0
// Time as an interface: nothing outside common/base reads a clock or sleeps by any other way, so
// production code runs unchanged on the simulator's virtual time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lambdadnn {

using Duration = std::chrono::nanoseconds;
// Monotonic: differences mean something, values do not. Never stored or sent.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;
// Wall-clock time in UTC, for timestamps that people and other programs read.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

inline Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}
inline double ToSeconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() = 0;
  virtual WallTime Wall() = 0;
  // Blocks the calling thread or fiber; a duration <= 0 returns at once.
  virtual void SleepFor(Duration duration) = 0;
};

// The machine's clocks.
class SystemClock final : public Clock {
 public:
  Instant Now() override;
  WallTime Wall() override;
  void SleepFor(Duration duration) override;
};

// CPU time that all threads of this process have used so far.
Duration ProcessCpuTime();

// RFC 3339 in UTC with seconds ("2026-01-31T12:00:00Z"), as the Kubernetes API writes times.
std::string FormatRfc3339(WallTime time);
// The time that FormatRfc3339 (fractions of a second allowed) wrote; false when it is not one.
bool ParseRfc3339(const std::string& text, WallTime* time);

}  // namespace lambdadnn
