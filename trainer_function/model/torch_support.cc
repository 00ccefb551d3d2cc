// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/torch_support.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lambdadnn {
namespace {

int64_t Elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t dimension : shape) count *= dimension;
  return count;
}

at::Tensor CopyToTensor(const float* data, const std::vector<int64_t>& shape) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  std::memcpy(tensor.data_ptr<float>(), data, sizeof(float) * static_cast<size_t>(tensor.numel()));
  return tensor;
}

at::Tensor Labels(const Batch& batch) {
  at::Tensor labels = at::empty({batch.samples}, at::kLong);
  std::copy(batch.labels.begin(), batch.labels.end(), labels.data_ptr<int64_t>());
  return labels;
}

// Targets as numbers; the two classes of BCEWithLogits are 0 and 1.
at::Tensor Targets(const Batch& batch, const OutputForm& form) {
  if (form.classes == 0) return CopyToTensor(batch.targets.data(), {batch.samples, form.outputs});
  return Labels(batch).to(at::kFloat).unsqueeze(1);
}

}  // namespace

void ConfigureTorch(int threads) {
  // Only the first call in a process may set it, and only before other work of the pool.
  static const bool once = [] {
    try {
      at::set_num_interop_threads(1);
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }();
  static_cast<void>(once);
  at::set_num_threads(threads);
  torch::jit::setTensorExprFuserEnabled(false);
}

// An error inside a script ends with the line that matters; others begin with it, and a trace
// follows.
std::string TorchErrorText(const std::exception& error) {
  static constexpr std::string_view kInScript = "RuntimeError: ";
  std::string text = error.what();
  const size_t in_script = text.rfind(kInScript);
  if (in_script != std::string::npos) text.erase(0, in_script + kInScript.size());
  return text.substr(0, text.find('\n'));
}

Status CheckBatch(const Batch& batch, const std::vector<int64_t>& sample_shape,
                  const OutputForm& form) {
  const int64_t features = Elements(sample_shape);
  const auto count = [](const auto& values) { return static_cast<int64_t>(values.size()); };
  if (batch.samples < 0 || Elements(batch.feature_shape) != features ||
      count(batch.features) != batch.samples * features) {
    return InvalidArgumentError("a batch of " + std::to_string(batch.samples) +
                                " samples does not fit the model, which takes " +
                                std::to_string(features) + " numbers a sample");
  }
  if (form.classes == 0) {
    if (count(batch.targets) == batch.samples * form.outputs) return OkStatus();
    return InvalidArgumentError("a batch has " + std::to_string(batch.targets.size()) +
                                " targets where the model needs " + std::to_string(form.outputs) +
                                " a sample");
  }
  if (count(batch.labels) != batch.samples) {
    return InvalidArgumentError("a batch has " + std::to_string(batch.labels.size()) +
                                " labels for " + std::to_string(batch.samples) + " samples");
  }
  for (const int64_t label : batch.labels) {
    if (label < 0 || label >= form.classes) {
      return InvalidArgumentError("the label " + std::to_string(label) +
                                  " is outside the model's " + std::to_string(form.classes) +
                                  " classes");
    }
  }
  return OkStatus();
}

void CopyToParameters(std::span<const float> flat, const ParameterManifest& manifest,
                      std::vector<at::Tensor>& parameters) {
  for (size_t i = 0; i < manifest.size(); ++i) {
    std::memcpy(parameters[i].data_ptr<float>(), flat.data() + manifest[i].offset,
                sizeof(float) * static_cast<size_t>(manifest[i].size));
  }
}

void CopyFromParameters(const ParameterManifest& manifest,
                        const std::vector<at::Tensor>& parameters, std::span<float> flat) {
  for (size_t i = 0; i < manifest.size(); ++i) {
    std::memcpy(flat.data() + manifest[i].offset, parameters[i].data_ptr<float>(),
                sizeof(float) * static_cast<size_t>(manifest[i].size));
  }
}

at::Tensor InputTensor(const Batch& batch, const std::vector<int64_t>& sample_shape) {
  std::vector<int64_t> shape = {batch.samples};
  shape.insert(shape.end(), sample_shape.begin(), sample_shape.end());
  return CopyToTensor(batch.features.data(), shape);
}

at::Tensor LossSum(const at::Tensor& outputs, const Batch& batch, const OutputForm& form) {
  const auto width = static_cast<double>(form.outputs);
  switch (form.loss) {
    case Loss::kMse:
      return at::mse_loss(outputs, Targets(batch, form), at::Reduction::Sum) / width;
    case Loss::kBceWithLogits:
      return at::binary_cross_entropy_with_logits(outputs, Targets(batch, form), {}, {},
                                                  at::Reduction::Sum) /
             width;
    case Loss::kCrossEntropy:
      break;
  }
  return at::cross_entropy_loss(outputs, Labels(batch), {}, at::Reduction::Sum);
}

int64_t CountCorrect(const at::Tensor& outputs, const Batch& batch, const OutputForm& form) {
  switch (form.loss) {
    case Loss::kMse:
      return 0;
    case Loss::kBceWithLogits:
      return (outputs > 0).eq(Targets(batch, form) > 0.5).all(1).sum().item<int64_t>();
    case Loss::kCrossEntropy:
      break;
  }
  return outputs.argmax(1).eq(Labels(batch)).sum().item<int64_t>();
}

}  // namespace lambdadnn
