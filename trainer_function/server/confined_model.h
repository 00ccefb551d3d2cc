// SPDX-License-Identifier: Apache-2.0
// A user's module in a worker: all of it, from reading its file to each step, runs on a task of its
// own that has no network, starts no programs and writes no files (common/base/confinement.h). Who
// calls waits for it. What does not end although its slice must have is given up with the process:
// nothing else ends code that runs.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/runtime.h"
#include "trainer_function/model/trainable_model.h"
#include "trainer_function/transport/interrupt.h"

namespace lambdadnn {

// Of the slice that runs. Thread-safe.
class SliceEnd {
 public:
  // SliceEnvironment::use_interrupt.
  void Use(Interrupt* of_slice);
  // Whether it was told to end at once, or its time is up. False between slices.
  bool IsOver();

 private:
  std::mutex mutex_;  // guards what follows
  Interrupt* of_slice_ = nullptr;
};

struct ConfinedModelOptions {
  // For how long a step may go on when its slice is over: more than any that ends takes.
  Duration grace = std::chrono::seconds(60);
  std::function<bool()> slice_is_over;
  // Must not return, but in tests; `why` is for the log.
  std::function<void(const std::string& why)> give_up;
};

using MakeTrainable = std::function<Result<std::unique_ptr<TrainableModel>>()>;

// What `make` gives, made and used on the confined task. kFailedPrecondition where the kernel
// cannot confine a thread. The runtime outlives the model.
Result<std::unique_ptr<TrainableModel>> MakeConfinedModel(Runtime& runtime,
                                                          const ConfinedModelOptions& options,
                                                          const MakeTrainable& make);

}  // namespace lambdadnn
