// SPDX-License-Identifier: Apache-2.0
// SGD, Adam and AdamW with PyTorch's semantics on a range of the flat vector. Element-wise,
// float32, without contraction: the bits depend on neither the range's cut nor the machine.
//
// The state (momentum, moments) is a fixed number of vectors of the range's size, owned by the
// server that owns the range and stored in its checkpoint part. Zero is the state of iteration 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/protocol/training_config.h"

namespace lambdadnn {

// kInvalidArgument naming the option (unknown name, momentum < 0, Nesterov without momentum, ...).
Status ValidateOptimizer(const OptimizerConfig& config);

// SGD: 1 with momentum, else 0. Adam, AdamW: 2, with amsgrad 3.
int OptimizerStateVectors(const OptimizerConfig& config);

struct OptimizerStep {
  double learning_rate = 0;
  int64_t updates_before = 0;  // since the state was zero: Adam's bias, SGD's first momentum
};

// One update of `weights` by the mean gradient. `gradient` is overwritten. `state` has
// OptimizerStateVectors() spans of the same size.
void ApplyOptimizer(const OptimizerConfig& config, const OptimizerStep& step,
                    std::span<float> weights, std::span<float> gradient,
                    std::span<const std::span<float>> state);

}  // namespace lambdadnn
