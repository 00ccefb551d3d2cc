// SPDX-License-Identifier: Apache-2.0
// A model of the user's own: a TorchScript archive (torch.jit.script or trace, then save). Its
// float32 parameters that require a gradient are trained, from the values in the file, under the
// names that named_parameters() gives them (of several for one tensor the first). Frozen parameters
// stay as they are, and buffers that a step changes follow it (module_state.h). The script runs
// without the JIT's optimizations, whose kernels depend on how often they ran, and every draw in it
// (dropout) comes from step_seed alone.
//
// forward takes one float32 tensor [samples, feature_shape...], or one of int64 if it can take no
// float32, and gives one [samples, outputs]: CrossEntropy as many outputs as classes, MSE and
// BCEWithLogits one a target ([samples] will do for one). Other attributes that a script changes
// are not the training's and end with a slice.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/protocol/training_config.h"
#include "trainer_function/model/architecture.h"
#include "trainer_function/model/compute_device.h"
#include "trainer_function/model/dataset_info.h"
#include "trainer_function/model/trainable_model.h"

namespace torch::jit {
struct Module;
}

namespace lambdadnn {

// The same of a module that is loaded, for samples of this shape. `initialize`, unless it is empty,
// sets the parameters to first values for a seed, and may throw LibTorch's exceptions, as this
// function may.
Result<std::unique_ptr<TrainableModel>> MakeScriptModel(
    const torch::jit::Module& module, const OutputForm& form,
    const std::vector<int64_t>& sample_shape, ComputeDevice device,
    std::function<void(uint64_t seed)> initialize);

// `archive`: the bytes at config.model.torch_script_uri. Before LibTorch reads it, its code is
// looked at for what would run then (script_archive.h). Where the data set may have more classes
// than are known, the module may have more outputs; it is to be tried then, not trained. Sets the
// process's LibTorch to `threads` threads, and to `device`, whose errors are those of PrepareDevice
// (torch_device.h). On a GPU parameters, buffers and constants are moved there; tensors that the
// script itself makes on "cpu" are not. kInvalidArgument naming the field, and the parameter or
// buffer, for whatever of the above does not hold.
Result<std::unique_ptr<TrainableModel>> MakeTorchScriptModel(
    const std::string& archive, const TrainingConfig& config, const DatasetInfo& dataset,
    int threads, ComputeDevice device = ComputeDevice::kCpu);

}  // namespace lambdadnn
