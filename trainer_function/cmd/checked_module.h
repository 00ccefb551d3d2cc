// SPDX-License-Identifier: Apache-2.0
// Whether this function may load a user's module: it is the one that the job began with, and has
// been tried in a process of its own (trainer_function/model/script_trial.h) by the operator, by
// another function of the job, or now. Thread-safe.
#pragma once

#include <mutex>
#include <string>

#include "common/base/status.h"
#include "common/protocol/training_config.h"
#include "trainer_function/model/dataset_info.h"

namespace lambdadnn {

class CheckedModule {
 public:
  // Before LibTorch reads the archive. kFailedPrecondition, with both digests, when it has changed
  // since the job began; errors of TryModule.
  Status Check(const std::string& archive, const TrainingConfig& config,
               const DatasetInfo& dataset);

 private:
  std::mutex mutex_;
  std::string passed_;  // what was tried last by this process: the digest, and what it had to fit
};

}  // namespace lambdadnn
