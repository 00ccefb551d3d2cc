// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/torch_model.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Version.h>
#include <torch/script.h>
#include <torch/version.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <exception>
#include <sstream>
#include <utility>

#include "trainer_function/model/architecture.h"
#include "trainer_function/model/module_state.h"
#include "trainer_function/model/parameter_memory.h"
#include "trainer_function/model/torch_device.h"
#include "trainer_function/model/torch_support.h"

namespace lambdadnn {
namespace {

at::Tensor Dropout(const at::Tensor& x, double probability, at::Generator& generator) {
  const at::Tensor kept = at::empty_like(x).bernoulli_(1 - probability, generator);
  return x * kept.div_(1 - probability);
}

// On a GPU it is the device's own, since LibTorch makes others by CUDA's headers alone; a step
// draws from nothing else.
at::Generator StepGenerator(ComputeDevice device, uint64_t step_seed) {
  const uint64_t seed = step_seed ^ kStepStream;
  if (device == ComputeDevice::kCpu) return at::make_generator<at::CPUGeneratorImpl>(seed);
  SeedGenerator(device, seed);
  return at::globalContext().defaultGenerator(TorchDevice(device));
}

class TorchModel final : public TrainableModel {
 public:
  TorchModel(Architecture architecture, ComputeDevice device)
      : architecture_(std::move(architecture)),
        device_(device),
        manifest_(MakeManifest(architecture_)),
        memory_(manifest_, MakeParameters(manifest_, device), device) {}

  const ParameterManifest& manifest() const override { return manifest_; }

  // torch.nn's Linear and Conv: kaiming_uniform_(a = sqrt(5)) for the weight, then
  // U(-1/sqrt(fan_in), 1/sqrt(fan_in)) for the bias, with the same roundings.
  void Initialize(uint64_t seed) override {
    at::NoGradGuard no_grad;
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    size_t next = 0;
    for (const Layer& layer : architecture_.layers) {
      if (!layer.has_parameters()) continue;
      const double a = std::sqrt(5.0);
      const double gain = std::sqrt(2.0 / (1 + a * a));
      const double root = std::sqrt(static_cast<double>(layer.fan_in()));
      const double weight_bound = std::sqrt(3.0) * (gain / root);
      const double bias_bound = 1 / root;
      Draw(next++, weight_bound, generator);
      Draw(next++, bias_bound, generator);
    }
  }

  void SetParameters(const SplitVector& flat) override {
    LDNN_CHECK(flat.size() == size(), "wrong number of parameters");
    memory_.Set(flat);
  }

  void GetParameters(std::span<float> flat) const override {
    LDNN_CHECK(static_cast<int64_t>(flat.size()) == size(), "wrong number of parameters");
    memory_.Get(flat);
  }

  Result<StepResult> ForwardBackward(const Batch& batch, uint64_t step_seed,
                                     std::span<float> gradient) override {
    LDNN_CHECK(static_cast<int64_t>(gradient.size()) == size(), "wrong size of the gradient");
    LDNN_RETURN_IF_ERROR(CheckBatch(batch, architecture_.input_shape, architecture_));
    if (batch.samples == 0) {
      std::fill(gradient.begin(), gradient.end(), 0.0f);
      return StepResult{};
    }
    UseConfiguredThreads();
    try {
      at::Generator generator = StepGenerator(device_, step_seed);
      const at::Tensor outputs = Forward(
          InputTensor(batch, architecture_.input_shape, InputType::kFloat32, device_), &generator);
      const at::Tensor loss =
          LossSum(outputs, AnswerTensor(batch, architecture_, device_), architecture_);
      loss.backward();
      return StepResult{memory_.TakeGradient(loss, gradient), batch.samples,
                        WeightSum(batch, architecture_)};
    } catch (const std::exception& error) {
      return InternalError("LibTorch failed in a training step: " + TorchErrorText(error));
    }
  }

  Result<EvaluationResult> Evaluate(const Batch& batch) override {
    LDNN_RETURN_IF_ERROR(CheckBatch(batch, architecture_.input_shape, architecture_));
    if (batch.samples == 0) return EvaluationResult{};
    UseConfiguredThreads();
    try {
      at::NoGradGuard no_grad;
      const at::Tensor outputs = Forward(
          InputTensor(batch, architecture_.input_shape, InputType::kFloat32, device_), nullptr);
      return ScoreBatch(outputs, batch, architecture_, device_);
    } catch (const std::exception& error) {
      return InternalError("LibTorch failed in an evaluation: " + TorchErrorText(error));
    }
  }

  Result<std::vector<StateTensor>> State() const override {
    std::vector<StateTensor> state;
    for (size_t i = 0; i < manifest_.size(); ++i) {
      LDNN_ASSIGN_OR_RETURN(state.emplace_back(),
                            ExportedTensor(manifest_[i].name, memory_.tensors()[i]));
    }
    return state;
  }

  Result<std::string> ExportTorchScript() override {
    try {
      const auto unit = std::make_shared<torch::jit::CompilationUnit>();
      torch::jit::Module module("__torch__.LambdaDnnModel", unit);
      size_t next = 0;
      for (const Layer& layer : architecture_.layers) {
        if (!layer.has_parameters()) continue;
        torch::jit::Module child("__torch__." + layer.name, unit);
        child.register_parameter("weight", Exported(next++), false);
        child.register_parameter("bias", Exported(next++), false);
        module.register_module(layer.name, child);
      }
      module.define(ForwardSource(architecture_));
      std::ostringstream archive;
      module.save(archive);
      return std::move(archive).str();
    } catch (const std::exception& error) {
      return InternalError("LibTorch failed to export the model: " + TorchErrorText(error));
    }
  }

 private:
  static std::vector<at::Tensor> MakeParameters(const ParameterManifest& manifest,
                                                ComputeDevice device) {
    const auto options = at::TensorOptions(at::kFloat).device(TorchDevice(device));
    std::vector<at::Tensor> parameters;
    for (const ParameterInfo& parameter : manifest) {
      parameters.push_back(at::zeros(parameter.shape, options).requires_grad_(true));
    }
    return parameters;
  }

  // U(-bound, bound), drawn by the processor whatever the device: the same start everywhere.
  void Draw(size_t parameter, double bound, at::Generator& generator) {
    const at::Tensor values = at::empty(manifest_[parameter].shape, at::kFloat);
    memory_.tensors()[parameter].copy_(values.uniform_(-bound, bound, generator));
  }

  // For a machine without a GPU, too.
  at::Tensor Exported(size_t parameter) const {
    return memory_.tensors()[parameter].detach().to(at::kCPU, at::kFloat, /*non_blocking=*/false,
                                                    /*copy=*/true);
  }

  // Dropout acts when there is a generator.
  at::Tensor Forward(at::Tensor x, at::Generator* generator) const {
    const AutocastScope precision(architecture_.precision);
    const std::vector<at::Tensor>& parameters = memory_.tensors();
    size_t next = 0;
    for (const Layer& layer : architecture_.layers) {
      const at::Tensor* weight = layer.has_parameters() ? &parameters[next] : nullptr;
      const at::Tensor* bias = layer.has_parameters() ? &parameters[next + 1] : nullptr;
      if (layer.has_parameters()) next += 2;
      switch (layer.kind) {
        case LayerKind::kLinear:
          x = at::linear(x, *weight, *bias);
          break;
        case LayerKind::kConv1d:
          x = at::conv1d(x, *weight, *bias, 1, layer.padding);
          break;
        case LayerKind::kConv2d:
          x = at::conv2d(x, *weight, *bias, 1, layer.padding);
          break;
        case LayerKind::kRelu:
          x = at::relu(x);
          break;
        case LayerKind::kMaxPool1d:
          x = at::max_pool1d(x, layer.kernel);
          break;
        case LayerKind::kMaxPool2d:
          x = at::max_pool2d(x, layer.kernel);
          break;
        case LayerKind::kFlatten:
          x = at::flatten(x, 1);
          break;
        case LayerKind::kDropout:
          if (generator != nullptr) x = Dropout(x, layer.probability, *generator);
          break;
      }
    }
    return x.to(at::kFloat);
  }

  const Architecture architecture_;
  const ComputeDevice device_;
  const ParameterManifest manifest_;
  ParameterMemory memory_;
};

}  // namespace

Result<std::unique_ptr<TrainableModel>> MakeTorchModel(const TrainingConfig& config,
                                                       const DatasetInfo& dataset, int threads,
                                                       ComputeDevice device) {
  if (threads < 1) return InvalidArgumentError("a model needs at least 1 thread");
  LDNN_ASSIGN_OR_RETURN(Architecture architecture,
                        BuildArchitecture(config.model, dataset, config.loss));
  LDNN_RETURN_IF_ERROR(SetLossOptions(config, &architecture));
  LDNN_RETURN_IF_ERROR(PrepareDevice(device, config.precision));
  try {
    ConfigureTorch(threads);
    return std::unique_ptr<TrainableModel>(
        std::make_unique<TorchModel>(std::move(architecture), device));
  } catch (const std::exception& error) {
    return InternalError("LibTorch failed to make the model: " + TorchErrorText(error));
  }
}

Status CheckProducts() {
  // More rows and columns than the vectors and blocks of any kernel, and none a multiple of them.
  constexpr int64_t kRows = 37;
  constexpr int64_t kInner = 785;
  constexpr int64_t kColumns = 131;
  ConfigureTorch(1);
  at::NoGradGuard no_grad;
  at::Tensor a = at::empty({kRows, kInner}, at::kFloat);
  at::Tensor b = at::empty({kColumns, kInner}, at::kFloat);
  // Small whole numbers: every order of summation gives the same product.
  for (int64_t i = 0; i < a.numel(); ++i) a.data_ptr<float>()[i] = static_cast<float>(i % 7 - 3);
  for (int64_t i = 0; i < b.numel(); ++i) b.data_ptr<float>()[i] = static_cast<float>(i % 5 - 2);
  const at::Tensor product = at::linear(a, b);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column) {
      float sum = 0;
      for (int64_t i = 0; i < kInner; ++i) {
        sum += a.data_ptr<float>()[row * kInner + i] * b.data_ptr<float>()[column * kInner + i];
      }
      if (product.data_ptr<float>()[row * kColumns + column] != sum) {
        return InternalError(
            "LibTorch computes wrong matrix products on this processor; run the worker on nodes of "
            "another kind (spec.podTemplate.spec.nodeSelector)");
      }
    }
  }
  return OkStatus();
}

std::string IsaLevel() {
#ifdef __aarch64__
  static constexpr const char* kBaseline = "neon";
#else
  static constexpr const char* kBaseline = "default";
#endif
  static constexpr std::string_view kLabel = "CPU capability usage: ";
  const std::string text = at::show_config();
  const size_t begin = text.find(kLabel);
  if (begin == std::string::npos) return kBaseline;
  std::string level;
  for (size_t i = begin + kLabel.size(); i < text.size() && std::isalnum(text[i]) != 0; ++i) {
    level += static_cast<char>(std::tolower(text[i]));
  }
  return level == "no" || level == "default" ? kBaseline : level;
}

std::string TorchVersion() { return TORCH_VERSION; }

}  // namespace lambdadnn
