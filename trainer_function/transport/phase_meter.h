// SPDX-License-Identifier: Apache-2.0
// Measures what a slice spends in each of its phases (common/base/phase_usage.h): the role
// says which phase begins, and what was spent since the last change goes to the phase that ends.
//
// Used by the role's own task alone; its transfer pools work on in the background. A change of
// phase reads the clock, the CPU time and the counter of requests, a few microseconds together, and
// allocates nothing. Throttled time is dear to read: it is read at most every kThrottleGap, and
// shared among the phases in between by the CPU time that they used.
#pragma once

#include <array>
#include <functional>

#include "common/base/clock.h"
#include "common/base/phase_usage.h"

namespace lambdadnn {

// Sums that only grow, of the process; a null one counts as zero.
struct PhaseSources {
  std::function<double()> cpu_seconds;
  std::function<double()> throttled_seconds;
  std::function<int64_t()> requests;
};

class PhaseMeter {
 public:
  static constexpr Duration kThrottleGap = std::chrono::milliseconds(10);

  // In kLoad since `started`. `clock` outlives the meter.
  PhaseMeter(Clock& clock, PhaseSources sources, Instant started);

  // Returns the phase that ends.
  Phase Enter(Phase phase);
  Phase current() const { return current_; }
  Instant Now() { return clock_.Now(); }
  // Of the process so far; 0 where nothing tells it. Reads a file: some 20 microseconds.
  double ThrottledSeconds() const;
  // All that was spent so far; the phase goes on.
  const PhaseUsages& Settle();

 private:
  void Charge(Instant now);
  void ChargeThrottled(Instant now);

  Clock& clock_;
  const PhaseSources sources_;
  PhaseUsages usages_;
  Phase current_ = Phase::kLoad;
  Instant changed_;
  double cpu_seconds_ = 0;
  int64_t requests_ = 0;
  Instant throttle_read_;
  double throttled_seconds_ = 0;
  std::array<double, kPhaseCount> cpu_since_read_ = {};
};

// A phase for as long as this lives; then the one before goes on.
class PhaseScope {
 public:
  PhaseScope(PhaseMeter& meter, Phase phase)
      : meter_(meter), before_(meter.Enter(phase)), begin_(meter.Now()) {}
  ~PhaseScope() { meter_.Enter(before_); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;
  // Seconds since it began.
  double Elapsed() const { return ToSeconds(meter_.Now() - begin_); }

 private:
  PhaseMeter& meter_;
  const Phase before_;
  const Instant begin_;
};

}  // namespace lambdadnn
