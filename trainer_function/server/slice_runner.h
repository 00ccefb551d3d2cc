// SPDX-License-Identifier: Apache-2.0
// One slice from its request to its completion record: opens the store, finds an earlier record of
// the same invocation, runs the role, writes the record. Blocks; the slice service calls it on a
// task of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "common/base/runtime.h"
#include "common/protocol/slice.h"
#include "trainer_function/server/slice_service.h"
#include "trainer_function/training/kept_training.h"
#include "trainer_function/transport/interrupt.h"

namespace lambdadnn {

// Signals that end a running slice.
struct SliceSignals {
  SliceSignals(Runtime& runtime, Instant deadline) : interrupt(runtime, deadline) {}
  Interrupt interrupt;
  std::atomic<bool> stop_wanted{false};
};

// OK when this process can run the request at all: protocol version, pins, roles, plan.
Status ValidateRequest(const SliceRequest& request, const SliceEnvironment& environment);

// The record, already in the store unless the slice was aborted or the store is away. `kept` is the
// process's.
SliceRecord RunSlice(Runtime& runtime, const SliceEnvironment& environment,
                     const SliceRequest& request, SliceSignals& signals, Instant started,
                     const std::function<void(const ProgressLine&)>& emit, KeptTraining& kept);

}  // namespace lambdadnn
