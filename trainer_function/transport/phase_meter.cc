// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/phase_meter.h"

#include <algorithm>
#include <utility>

namespace lambdadnn {
namespace {

template <typename Value>
Value Read(const std::function<Value()>& source) {
  return source ? source() : Value{};
}

}  // namespace

PhaseMeter::PhaseMeter(Clock& clock, PhaseSources sources, Instant started)
    : clock_(clock),
      sources_(std::move(sources)),
      changed_(started),
      cpu_seconds_(Read(sources_.cpu_seconds)),
      requests_(Read(sources_.requests)),
      throttle_read_(started),
      throttled_seconds_(Read(sources_.throttled_seconds)) {}

void PhaseMeter::Charge(Instant now) {
  PhaseUsage& usage = usages_[current_];
  usage.wall_seconds += ToSeconds(now - changed_);
  changed_ = now;
  const double cpu_seconds = Read(sources_.cpu_seconds);
  const double used = std::max(0.0, cpu_seconds - cpu_seconds_);
  usage.cpu_seconds += used;
  cpu_seconds_ = cpu_seconds;
  cpu_since_read_[static_cast<size_t>(current_)] += used;
  const int64_t requests = Read(sources_.requests);
  usage.requests += requests - requests_;
  requests_ = requests;
}

void PhaseMeter::ChargeThrottled(Instant now) {
  throttle_read_ = now;
  const double throttled_seconds = Read(sources_.throttled_seconds);
  // A source that can no longer be read says zero.
  const double more = std::max(0.0, throttled_seconds - throttled_seconds_);
  throttled_seconds_ = throttled_seconds;
  double cpu = 0;
  for (const double of_phase : cpu_since_read_) cpu += of_phase;
  if (cpu <= 0) {
    usages_[current_].throttled_seconds += more;
  } else {
    for (size_t i = 0; i < kPhaseCount; ++i) {
      usages_.phases[i].throttled_seconds += more * cpu_since_read_[i] / cpu;
    }
  }
  cpu_since_read_.fill(0);
}

double PhaseMeter::ThrottledSeconds() const { return Read(sources_.throttled_seconds); }

Phase PhaseMeter::Enter(Phase phase) {
  const Instant now = clock_.Now();
  Charge(now);
  if (now - throttle_read_ >= kThrottleGap) ChargeThrottled(now);
  return std::exchange(current_, phase);
}

const PhaseUsages& PhaseMeter::Settle() {
  const Instant now = clock_.Now();
  Charge(now);
  ChargeThrottled(now);
  return usages_;
}

}  // namespace lambdadnn
