// SPDX-License-Identifier: Apache-2.0
// LibTorch on a device: what has to be set in the process before it computes there, and what
// decides the bits that come out. On a GPU, LibTorch's deterministic algorithms are on for the
// whole process, cuDNN chooses none by measuring, and float32 products are of float32 (no TF32):
// the same job gives the same bits on every GPU of the same kind with the same libraries.
#pragma once

#include "common/base/status.h"
#include "common/plan/training_values.h"
#include "common/protocol/numerics_fingerprint.h"
#include "trainer_function/model/compute_device.h"

namespace lambdadnn {

// What has to be there, and set, for a model on this device in this precision. For bfloat16 that is
// a processor that multiplies such numbers, and a LibTorch with oneDNN. Of CUDA: starts it and
// computes something there, so that a GPU that cannot be used is known before anything is trained.
// kFailedPrecondition, with what to do about it, when one is not there, and when this LibTorch has
// no CUDA, sees no GPU, or has no kernels for it. Sets environment variables: call it before other
// threads run, and before other functions that use LibTorch. Further calls return what the first
// one did.
Status PrepareDevice(ComputeDevice device, Precision precision = Precision::kFloat32);

// Of this process on `device`. In bfloat16 the instruction set is that of its products, too
// ("avx512+amx_bf16"). On a GPU the instruction set is that of the processor and of the GPU
// ("avx2+sm_90"), and the libraries are CUDA's, with the GPU's name: its number of multiprocessors
// decides between kernels ("2.11.0, CUDA 13.0, cuDNN 91900, NVIDIA H100 80GB HBM3").
NumericsFingerprint FingerprintOn(ComputeDevice device, Precision precision = Precision::kFloat32);

}  // namespace lambdadnn
