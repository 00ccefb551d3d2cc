// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/torch_support.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>

#include "common/base/check.h"
#include "trainer_function/model/torch_memory.h"

namespace lambdadnn {
namespace {

constexpr int64_t kNoneIgnored = -100;  // PyTorch's: labels are from 0 on

// float32 holds every whole number up to this one.
constexpr float kLargestExact = 1 << 24;

// Ends before the copy has: it is ordered before what uses the tensor, and LibTorch keeps the
// page-locked memory for as long as it takes.
at::Tensor ToDevice(const at::Tensor& host, ComputeDevice device) {
  if (device == ComputeDevice::kCpu) return host;
  return host.to(TorchDevice(device), /*non_blocking=*/true);
}

at::Tensor CopyToTensor(const float* data, const std::vector<int64_t>& shape,
                        ComputeDevice device) {
  const at::Tensor tensor = HostTensor(shape, at::kFloat, device);
  std::memcpy(tensor.data_ptr<float>(), data, sizeof(float) * static_cast<size_t>(tensor.numel()));
  return ToDevice(tensor, device);
}

at::Tensor Labels(const Batch& batch, ComputeDevice device) {
  const at::Tensor labels = HostTensor({batch.samples}, at::kLong, device);
  std::copy(batch.labels.begin(), batch.labels.end(), labels.data_ptr<int64_t>());
  return ToDevice(labels, device);
}

// [samples, classes]: of each sample the share of its own class, and the rest of its partner's.
at::Tensor MixedLabels(const Batch& batch, int classes, ComputeDevice device) {
  const at::Tensor mixed = HostTensor({batch.samples, classes}, at::kFloat, device).zero_();
  float* row = mixed.data_ptr<float>();
  for (size_t i = 0; i < batch.labels.size(); ++i, row += classes) {
    row[batch.labels[i]] += batch.shares[i];
    row[batch.partner_labels[i]] += 1 - batch.shares[i];
  }
  return ToDevice(mixed, device);
}

at::Tensor CountCorrect(const at::Tensor& outputs, const at::Tensor& answers,
                        const OutputForm& form) {
  switch (form.loss) {
    case Loss::kMse:
      return at::zeros({}, outputs.options());
    case Loss::kBceWithLogits:
      return (outputs > 0).eq(answers > 0.5).all(1).sum();
    case Loss::kCrossEntropy:
      break;
  }
  return outputs.argmax(1).eq(answers).sum();
}

// Samples of which fewer than kTopClasses outputs are larger than that of their class. One that is
// not a number is never among them.
at::Tensor CountTop(const at::Tensor& outputs, const at::Tensor& labels) {
  const at::Tensor own = outputs.gather(1, labels.unsqueeze(1));
  return outputs.le(own).logical_not().sum(1).lt(kTopClasses).sum();
}

void SetAutocast(bool on) {
#if TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR >= 204
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, on);
#else
  at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
  at::autocast::set_cpu_enabled(on);
#endif
}

// 0 = ConfigureTorch was not called.
std::atomic<int> configured_threads = 0;

}  // namespace

void UseConfiguredThreads() {
  thread_local int used = 0;
  const int wanted = configured_threads;
  if (used == wanted) return;
  at::set_num_threads(wanted);
  used = wanted;
}

void ConfigureTorch(int threads) {
  // Only the first call in a process may set it, and only before other work of the pool.
  static const bool once = [] {
    KeepLargeTensors();
    try {
      at::set_num_interop_threads(1);
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }();
  static_cast<void>(once);
  configured_threads = threads;
  UseConfiguredThreads();
  torch::jit::setTensorExprFuserEnabled(false);
}

AutocastScope::AutocastScope(Precision precision) : is_on_(precision == Precision::kBfloat16) {
  if (is_on_) SetAutocast(true);
}

AutocastScope::~AutocastScope() {
  if (!is_on_) return;
  SetAutocast(false);
  at::autocast::clear_cache();
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
  const int64_t features = ElementsIn(sample_shape);
  const auto count = [](const auto& values) { return static_cast<int64_t>(values.size()); };
  if (batch.samples < 0 || ElementsIn(batch.feature_shape) != features ||
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
  LDNN_CHECK(batch.shares.size() == batch.partner_labels.size() &&
                 (batch.shares.empty() || batch.shares.size() == batch.labels.size()),
             "a batch is mixed in part");
  for (const std::vector<int64_t>* const labels : {&batch.labels, &batch.partner_labels}) {
    for (const int64_t label : *labels) {
      if (label >= 0 && label < form.classes) continue;
      return InvalidArgumentError("the label " + std::to_string(label) +
                                  " is outside the model's " + std::to_string(form.classes) +
                                  " classes");
    }
  }
  return OkStatus();
}

c10::Device TorchDevice(ComputeDevice device) {
  switch (device) {
    case ComputeDevice::kCuda:
      return {at::kCUDA, 0};
    case ComputeDevice::kCpu:
      break;
  }
  return {at::kCPU};
}

void SeedGenerator(ComputeDevice device, uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(TorchDevice(device));
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

at::Tensor HostTensor(const std::vector<int64_t>& shape, c10::ScalarType type,
                      ComputeDevice device) {
  if (device == ComputeDevice::kCpu) return at::empty(shape, type);
  return at::empty(shape, at::TensorOptions(type).pinned_memory(true));
}

c10::ScalarType ScalarTypeOf(InputType type) {
  return type == InputType::kInt64 ? at::kLong : at::kFloat;
}

Status CheckWholeNumbers(const Batch& batch) {
  for (const float feature : batch.features) {
    if (std::trunc(feature) == feature && std::abs(feature) <= kLargestExact) continue;
    return InvalidArgumentError(
        "the model takes whole numbers up to 2^24 (token ids), and a sample has " +
        std::to_string(feature) +
        "; give spec.dataset the ids, without scale, normalize or augment");
  }
  return OkStatus();
}

at::Tensor InputTensor(const Batch& batch, const std::vector<int64_t>& sample_shape, InputType type,
                       ComputeDevice device) {
  std::vector<int64_t> shape = {batch.samples};
  shape.insert(shape.end(), sample_shape.begin(), sample_shape.end());
  const at::Tensor features = CopyToTensor(batch.features.data(), shape, device);
  return type == InputType::kFloat32 ? features : features.to(ScalarTypeOf(type));
}

at::Tensor AnswerTensor(const Batch& batch, const OutputForm& form, ComputeDevice device) {
  if (form.classes == 0) {
    return CopyToTensor(batch.targets.data(), {batch.samples, form.outputs}, device);
  }
  if (!batch.shares.empty()) {
    const at::Tensor mixed = MixedLabels(batch, form.classes, device);
    return form.loss == Loss::kCrossEntropy ? mixed : mixed.narrow(1, 1, 1);
  }
  const at::Tensor labels = Labels(batch, device);
  return form.loss == Loss::kCrossEntropy ? labels : labels.to(at::kFloat).unsqueeze(1);
}

at::Tensor LossSum(const at::Tensor& outputs, const at::Tensor& answers, const OutputForm& form) {
  const auto width = static_cast<double>(form.outputs);
  switch (form.loss) {
    case Loss::kMse:
      return at::mse_loss(outputs, answers, at::Reduction::Sum) / width;
    case Loss::kBceWithLogits:
      return at::binary_cross_entropy_with_logits(outputs, answers, {}, {}, at::Reduction::Sum) /
             width;
    case Loss::kCrossEntropy:
      break;
  }
  c10::optional<at::Tensor> weights;
  if (!form.class_weights.empty()) {
    weights = at::tensor(at::ArrayRef<float>(form.class_weights)).to(outputs.device());
  }
  return at::cross_entropy_loss(outputs, answers, weights, at::Reduction::Sum, kNoneIgnored,
                                form.label_smoothing);
}

namespace {

// Loss and counts are read together: each read waits for the GPU. All are exact as doubles.
EvaluationResult Score(const at::Tensor& outputs, const at::Tensor& answers,
                       const OutputForm& form) {
  std::vector<at::Tensor> sums = {LossSum(outputs, answers, form),
                                  CountCorrect(outputs, answers, form)};
  const bool has_top5 = form.loss == Loss::kCrossEntropy && form.classes > kTopClasses;
  if (has_top5) sums.push_back(CountTop(outputs, answers));
  if (form.loss == Loss::kMse) {
    sums.push_back(at::l1_loss(outputs, answers, at::Reduction::Sum) /
                   static_cast<double>(form.outputs));
  }
  for (at::Tensor& sum : sums) sum = sum.to(at::kDouble);
  const at::Tensor all = at::stack(sums).cpu();
  const double* const values = all.data_ptr<double>();
  EvaluationResult result;
  result.loss_sum = values[0];
  result.correct = static_cast<int64_t>(values[1]);
  result.samples = outputs.size(0);
  if (has_top5) result.correct_top5 = static_cast<int64_t>(values[2]);
  if (form.loss == Loss::kMse) result.absolute_error_sum = values[2];
  return result;
}

}  // namespace

double WeightSum(const Batch& batch, const OutputForm& form) {
  if (form.class_weights.empty()) return 0;
  const auto weight = [&](int64_t label) {
    return static_cast<double>(form.class_weights[static_cast<size_t>(label)]);
  };
  double sum = 0;
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    const double share = batch.shares.empty() ? 1 : static_cast<double>(batch.shares[i]);
    sum += share * weight(batch.labels[i]);
    if (share < 1) sum += (1 - share) * weight(batch.partner_labels[i]);
  }
  return sum;
}

EvaluationResult ScoreBatch(const at::Tensor& outputs, const Batch& batch, const OutputForm& form,
                            ComputeDevice device) {
  EvaluationResult result = Score(outputs, AnswerTensor(batch, form, device), form);
  if (!form.class_weights.empty()) result.weight_sum = WeightSum(batch, form);
  return result;
}

}  // namespace lambdadnn
