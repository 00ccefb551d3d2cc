// SPDX-License-Identifier: Apache-2.0
// Helpers of the models on LibTorch: settings of the process, tensors of a batch, losses and
// numbers of correct predictions. Declares LibTorch's types without their headers, which cost
// seconds in every file. All functions but CheckBatch and TorchErrorText may throw LibTorch's
// exceptions.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "trainer_function/model/architecture.h"
#include "trainer_function/model/compute_device.h"
#include "trainer_function/model/trainable_model.h"

namespace at {
class Tensor;
}
namespace c10 {
struct Device;
enum class ScalarType : int8_t;
}  // namespace c10

namespace lambdadnn {

// Separates the draws of a step from whatever else a caller derives from the same step seed.
inline constexpr uint64_t kStepStream = 0x64726f70;

// Of the process: how many threads its models compute with; no fusion of graphs, whose kernels
// depend on how often they ran; where large tensors lie.
void ConfigureTorch(int threads);

// LibTorch's number of threads is one of each thread that calls it, and the bits of a product may
// depend on it: whatever computes begins with this, since a model that is kept for the next slice
// is used by another thread than the one that made it.
void UseConfiguredThreads();

// For as long as it lives, forward of this thread computes in `precision` on the processor: with
// bfloat16 as under PyTorch's autocast, by copies of the weights that end with it.
class AutocastScope {
 public:
  explicit AutocastScope(Precision precision);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  const bool is_on_;
};

// The sentence of LibTorch's message that says what is wrong, without stack traces.
std::string TorchErrorText(const std::exception& error);

// kInvalidArgument when the batch has not `sample_shape`'s numbers a sample, or labels or targets
// that the form does not expect.
Status CheckBatch(const Batch& batch, const std::vector<int64_t>& sample_shape,
                  const OutputForm& form);

c10::Device TorchDevice(ComputeDevice device);

// Of the device's own generator, which belongs to the process.
void SeedGenerator(ComputeDevice device, uint64_t seed);

// In the host's memory, not set to anything; for a GPU page-locked, from which copies are fast.
at::Tensor HostTensor(const std::vector<int64_t>& shape, c10::ScalarType type,
                      ComputeDevice device);

// What a model's forward takes; whole numbers are token ids and the like.
enum class InputType { kFloat32, kInt64 };
c10::ScalarType ScalarTypeOf(InputType type);

// kInvalidArgument when a feature is no whole number, or one that float32 may not hold exactly.
Status CheckWholeNumbers(const Batch& batch);

// [samples, sample_shape...] on `device`, a copy in LibTorch's own aligned memory, so that the
// batch's address does not influence which kernel runs.
at::Tensor InputTensor(const Batch& batch, const std::vector<int64_t>& sample_shape, InputType type,
                       ComputeDevice device);
// What the outputs are compared with, on `device`: for CrossEntropy the labels, [samples] of int64,
// or of a batch with mixup the classes' shares, [samples, classes] of float32; else [samples,
// form.outputs] of float32, in which the two classes of BCEWithLogits are 0 and 1.
at::Tensor AnswerTensor(const Batch& batch, const OutputForm& form, ComputeDevice device);

// `outputs` is [samples, form.outputs] of float32. A scalar with a gradient, see torch_model.h for
// the means.
at::Tensor LossSum(const at::Tensor& outputs, const at::Tensor& answers, const OutputForm& form);
// Of the samples' classes, exactly; 0 without class weights. The batch's labels are checked.
double WeightSum(const Batch& batch, const OutputForm& form);
// With the samples of the correct class; with several binary targets a sample counts when all are
// correct.
EvaluationResult ScoreBatch(const at::Tensor& outputs, const Batch& batch, const OutputForm& form,
                            ComputeDevice device);

}  // namespace lambdadnn
