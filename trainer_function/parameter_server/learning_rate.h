// SPDX-License-Identifier: Apache-2.0
// The learning rate of an iteration as a pure function: PyTorch's schedulers stepped once an
// iteration (constant, StepLR, CosineAnnealingLR), after an optional linear warm-up (LinearLR from
// 1/w to 1 over w iterations).
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/protocol/training_config.h"

namespace lambdadnn {

// `iteration` is the job's, from 0; `iterations` the job's total (the cosine's end).
double LearningRate(const OptimizerConfig& config, int64_t iteration, int64_t iterations);

}  // namespace lambdadnn
