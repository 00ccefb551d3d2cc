// SPDX-License-Identifier: Apache-2.0
// The built-in models on LibTorch. Initialisation, parameter names and layouts are those of the
// PyTorch modules in tests/data/pytorch_twins.py: the same seed gives the same bits there. For a
// given LibTorch build, ISA level and number of threads every step is a pure function of its
// arguments: tensors keep their own 64-byte aligned memory whatever the shards, dropout draws from
// step_seed alone, and no graph optimizer runs. On a GPU the same holds for its kind and libraries
// (torch_device.h); the initial parameters are those of the processor, dropout's draws are not.
//
// loss_sum adds up per sample: cross entropy; MSE and BCEWithLogits are means over the sample's
// targets, so that loss_sum / samples is what PyTorch's reduction="mean" gives.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/protocol/training_config.h"
#include "trainer_function/model/compute_device.h"
#include "trainer_function/model/dataset_info.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

// Sets the process's LibTorch to `threads` threads (>= 1), and to `device`, whose errors are those
// of PrepareDevice. kInvalidArgument naming the field for a model, parameter, loss or data set that
// do not fit.
Result<std::unique_ptr<TrainableModel>> MakeTorchModel(const TrainingConfig& config,
                                                       const DatasetInfo& dataset, int threads,
                                                       ComputeDevice device = ComputeDevice::kCpu);

// Whether a linear layer of LibTorch is what a plain loop computes, on one thread. kInternal where
// it is not, as on a processor that its BLAS or an emulator gets wrong: nothing else would tell.
// Takes milliseconds.
Status CheckProducts();

// The instruction set that LibTorch's kernels use here: "avx512", "avx2" or "default", on 64-bit
// ARM "neon", "sve", "sve128" or "sve256". Plans pin it, because it changes bits.
std::string IsaLevel();
// "1.13.0": together with IsaLevel, the BLAS and the threads it decides the bits.
std::string TorchVersion();

}  // namespace lambdadnn
