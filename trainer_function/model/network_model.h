// SPDX-License-Identifier: Apache-2.0
// A built-in network on LibTorch: TorchScript without weights, which the program has inside, given
// shapes by network.h and first values from a seed, and then trained as a user's module is.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/protocol/training_config.h"
#include "trainer_function/model/compute_device.h"
#include "trainer_function/model/dataset_info.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

// Any built-in model, these and those of torch_model.h. Settings and errors as there.
Result<std::unique_ptr<TrainableModel>> MakeBuiltinModel(
    const TrainingConfig& config, const DatasetInfo& dataset, int threads,
    ComputeDevice device = ComputeDevice::kCpu);

}  // namespace lambdadnn
