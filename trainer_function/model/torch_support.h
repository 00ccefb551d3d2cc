// SPDX-License-Identifier: Apache-2.0
// Helpers of the models on LibTorch: settings of the process, tensors of a batch, losses and
// numbers of correct predictions. Declares at::Tensor without its header, which costs seconds in
// every file. All functions but CheckBatch and TorchErrorText may throw LibTorch's exceptions.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "trainer_function/model/architecture.h"
#include "trainer_function/model/trainable_model.h"

namespace at {
class Tensor;
}

namespace lambdadnn {

// Separates the draws of a step from whatever else a caller derives from the same step seed.
inline constexpr uint64_t kStepStream = 0x64726f70;

// Sets the process's threads; no fusion of graphs, whose kernels depend on how often they ran.
void ConfigureTorch(int threads);

// The sentence of LibTorch's message that says what is wrong, without stack traces.
std::string TorchErrorText(const std::exception& error);

// kInvalidArgument when the batch has not `sample_shape`'s numbers a sample, or labels or targets
// that the form does not expect.
Status CheckBatch(const Batch& batch, const std::vector<int64_t>& sample_shape,
                  const OutputForm& form);

// Between the flat vector and the model's tensors, which are contiguous float32 in the manifest's
// order; `flat` has exactly the manifest's size.
void CopyToParameters(std::span<const float> flat, const ParameterManifest& manifest,
                      std::vector<at::Tensor>& parameters);
void CopyFromParameters(const ParameterManifest& manifest,
                        const std::vector<at::Tensor>& parameters, std::span<float> flat);

// [samples, sample_shape...], a copy in LibTorch's own aligned memory, so that the batch's address
// does not influence which kernel runs.
at::Tensor InputTensor(const Batch& batch, const std::vector<int64_t>& sample_shape);

// `outputs` is [samples, form.outputs]. A scalar with a gradient, see torch_model.h for the means.
at::Tensor LossSum(const at::Tensor& outputs, const Batch& batch, const OutputForm& form);
// Samples with the correct class; with several binary targets a sample counts when all are correct.
int64_t CountCorrect(const at::Tensor& outputs, const Batch& batch, const OutputForm& form);

}  // namespace lambdadnn
