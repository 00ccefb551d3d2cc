// SPDX-License-Identifier: Apache-2.0
// Inputs of one role of one slice: the request, the store, stop signals, where to report progress.
// Made by the slice service; outlives the role.
#pragma once

#include <functional>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "common/protocol/object_keys.h"
#include "common/protocol/slice.h"
#include "trainer_function/transport/bells.h"
#include "trainer_function/transport/exchange_codec.h"
#include "trainer_function/transport/interrupt.h"
#include "trainer_function/transport/phase_meter.h"

namespace lambdadnn {

struct RoleContext {
  Runtime& runtime;
  ObjectStore& store;  // counted; its keys begin with request.store.prefix
  Interrupt& interrupt;
  const SliceRequest& request;
  std::function<void(const ProgressLine&)> emit;
  // Whether a graceful stop was requested.
  std::function<bool()> stop_wanted;
  // After each piece of CPU work, see SliceEnvironment::pace. Never null.
  std::function<void()> pace;
  // What the role's task does; in kLoad when the role begins.
  PhaseMeter& phases;
  Instant started{};
  // By which writers tell readers what lies in the store, where functions of the job reach each
  // other; else null.
  Bells* bells = nullptr;

  ExchangeScope scope() const { return ScopeOf(request); }
};

// Adds the seconds of its lifetime to `*seconds`.
class PhaseTimer {
 public:
  PhaseTimer(Clock& clock, double* seconds)
      : clock_(clock), seconds_(seconds), start_(clock.Now()) {}
  ~PhaseTimer() { *seconds_ += Elapsed(); }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;
  double Elapsed() const { return ToSeconds(clock_.Now() - start_); }

 private:
  Clock& clock_;
  double* seconds_;
  Instant start_;
};

}  // namespace lambdadnn
