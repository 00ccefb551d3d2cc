// SPDX-License-Identifier: Apache-2.0
// Builds the functions' TrainingConfig from spec.model, spec.dataset and spec.training, and the
// planner's limits that follow from them. Pure.
#pragma once

#include <cstdint>

#include "common/plan/workload.h"
#include "common/protocol/training_config.h"
#include "operator/api/job.h"

namespace lambdadnn {

// `global_batch_size`: the plan's. It decides the effective learning rate: spec's, times
// (global / local batch) for Linear scaling, times its square root for SquareRoot.
TrainingConfig BuildTrainingConfig(const JobSpec& spec, int64_t training_samples,
                                   int global_batch_size);

TrainingLimits BuildTrainingLimits(const JobSpec& spec);

}  // namespace lambdadnn
