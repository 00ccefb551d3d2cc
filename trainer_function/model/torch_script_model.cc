// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/torch_script_model.h"

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>
#include <torch/version.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>
#include <utility>

#include "trainer_function/model/architecture.h"
#include "trainer_function/model/module_state.h"
#include "trainer_function/model/parameter_memory.h"
#include "trainer_function/model/script_archive.h"
#include "trainer_function/model/script_operators.h"
#include "trainer_function/model/torch_device.h"
#include "trainer_function/model/torch_support.h"

namespace lambdadnn {
namespace {

// Samples of the trial step: batch norm in training needs more than one.
constexpr int64_t kTrialSamples = 2;

std::string ShapeText(c10::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

class ScriptModel final : public TrainableModel {
 public:
  ScriptModel(torch::jit::Module module, OutputForm form, std::vector<int64_t> sample_shape,
              ComputeDevice device, std::function<void(uint64_t seed)> initialize)
      : module_(std::move(module)),
        form_(form),
        sample_shape_(std::move(sample_shape)),
        device_(device),
        initialize_(std::move(initialize)),
        buffers_(module_) {}

  // Finds what to train; then one trial step.
  Status Prepare() {
    LDNN_RETURN_IF_ERROR(FindParameters());
    if (!initialize_) {
      initial_.resize(static_cast<size_t>(size()));
      GetParameters(initial_);
    }
    LDNN_RETURN_IF_ERROR(TryStep());
    initial_buffers_.resize(static_cast<size_t>(buffer_size()));
    GetBuffers(initial_buffers_);
    return OkStatus();
  }

  const ParameterManifest& manifest() const override { return manifest_; }

  // The file's values, in which a seed has no part, unless there is something that draws others.
  void Initialize(uint64_t seed) override {
    if (initialize_) {
      initialize_(seed);
    } else {
      SetParameters(initial_);
    }
    SetBuffers(initial_buffers_, 0);
  }

  void SetParameters(const SplitVector& flat) override {
    LDNN_CHECK(flat.size() == size(), "wrong number of parameters");
    memory_->Set(flat);
  }

  void GetParameters(std::span<float> flat) const override {
    LDNN_CHECK(static_cast<int64_t>(flat.size()) == size(), "wrong number of parameters");
    memory_->Get(flat);
  }

  int64_t buffer_size() const override { return buffers_.size(); }
  void SetBuffers(std::span<const float> flat, int64_t steps) override {
    buffers_.Set(flat, steps, device_);
  }
  void GetBuffers(std::span<float> flat) const override { buffers_.Get(flat); }

  Result<StepResult> ForwardBackward(const Batch& batch, uint64_t step_seed,
                                     std::span<float> gradient) override {
    LDNN_CHECK(static_cast<int64_t>(gradient.size()) == size(), "wrong size of the gradient");
    LDNN_RETURN_IF_ERROR(CheckInput(batch));
    if (batch.samples == 0) {
      std::fill(gradient.begin(), gradient.end(), 0.0f);
      return StepResult{};
    }
    UseConfiguredThreads();
    try {
      Seed(step_seed);
      LDNN_ASSIGN_OR_RETURN(const at::Tensor outputs,
                            Forward(InputTensor(batch, sample_shape_, input_, device_), true));
      const at::Tensor loss = LossSum(outputs, AnswerTensor(batch, form_, device_), form_);
      loss.backward();
      return StepResult{memory_->TakeGradient(loss, gradient), batch.samples,
                        WeightSum(batch, form_)};
    } catch (const std::exception& error) {
      return StepError(error);
    }
  }

  Result<EvaluationResult> Evaluate(const Batch& batch) override {
    LDNN_RETURN_IF_ERROR(CheckInput(batch));
    if (batch.samples == 0) return EvaluationResult{};
    UseConfiguredThreads();
    try {
      at::NoGradGuard no_grad;
      LDNN_ASSIGN_OR_RETURN(const at::Tensor outputs,
                            Forward(InputTensor(batch, sample_shape_, input_, device_), false));
      return ScoreBatch(outputs, batch, form_, device_);
    } catch (const std::exception& error) {
      return InternalError("the TorchScript model failed in an evaluation: " +
                           TorchErrorText(error));
    }
  }

  Result<std::vector<StateTensor>> State() const override { return StateOf(module_); }

  // The user's module with the trained parameters, ready to predict without a GPU.
  Result<std::string> ExportTorchScript() override {
    try {
      module_.train(false);
      std::ostringstream archive;
      if (device_ == ComputeDevice::kCpu) {
        module_.save(archive);
      } else {
        torch::jit::Module exported = module_.deepcopy();
        exported.to(at::kCPU);
        exported.save(archive);
      }
      return std::move(archive).str();
    } catch (const std::exception& error) {
      return InternalError("LibTorch failed to export the model: " + TorchErrorText(error));
    }
  }

 private:
  Status StepError(const std::exception& error) const {
    return InternalError(
        "the TorchScript model failed in a training step: " + TorchErrorText(error) +
        (input_ == InputType::kInt64 ? "; is a token id of the data set beyond the vocabulary?"
                                     : ""));
  }

  Status CheckInput(const Batch& batch) const {
    LDNN_RETURN_IF_ERROR(CheckBatch(batch, sample_shape_, form_));
    return input_ == InputType::kInt64 ? CheckWholeNumbers(batch) : OkStatus();
  }

  Status FindParameters() {
    int64_t offset = 0;
    std::vector<at::Tensor> parameters;
    for (const auto& owner : module_.named_modules()) {
      for (const auto& own : owner.value.named_parameters(/*recurse=*/false)) {
        const std::string name = owner.name.empty() ? own.name : owner.name + "." + own.name;
        at::Tensor parameter = own.value;
        if (!parameter.requires_grad()) continue;
        if (parameter.scalar_type() != at::kFloat) {
          return InvalidArgumentError("spec.model.torchScript: the parameter " + name + " is " +
                                      c10::toString(parameter.scalar_type()) +
                                      ", not Float; save the module after .float()");
        }
        // One that has several names is trained once, under the first.
        const bool known = std::any_of(
            parameters.begin(), parameters.end(), [&parameter](const at::Tensor& earlier) {
              return earlier.unsafeGetTensorImpl() == parameter.unsafeGetTensorImpl();
            });
        if (known) continue;
        // Memory of its own, whatever views or layouts the file had.
        parameter.set_data(parameter.detach().clone(at::MemoryFormat::Contiguous));
        manifest_.push_back({name, parameter.sizes().vec(), offset, parameter.numel()});
        offset += parameter.numel();
        parameters.push_back(std::move(parameter));
      }
    }
    if (offset == 0) {
      return InvalidArgumentError(
          "spec.model.torchScript: the module has no parameters that require a gradient; save it "
          "before torch.jit.freeze, with requires_grad");
    }
    memory_.emplace(manifest_, std::move(parameters), device_);
    return OkStatus();
  }

  // Forward on zeros, in training and in evaluation: whether samples fit, outputs fit the loss,
  // which buffers change.
  Status TryStep() {
    at::NoGradGuard no_grad;
    std::vector<int64_t> shape = {kTrialSamples};
    shape.insert(shape.end(), sample_shape_.begin(), sample_shape_.end());
    std::string errors;
    for (const InputType type : {InputType::kFloat32, InputType::kInt64}) {
      input_ = type;
      const at::Tensor zeros =
          at::zeros(shape, at::TensorOptions(ScalarTypeOf(type)).device(TorchDevice(device_)));
      try {
        LDNN_RETURN_IF_ERROR(Forward(zeros, true).status());
        LDNN_RETURN_IF_ERROR(buffers_.FindAfterStep());
        LDNN_RETURN_IF_ERROR(Forward(zeros, false).status());
        return buffers_.CheckAfterEvaluation();
      } catch (const std::exception& error) {
        errors += std::string(errors.empty() ? "" : "; ") + "as " +
                  c10::toString(ScalarTypeOf(type)) + ": " + TorchErrorText(error);
      }
    }
    return InvalidArgumentError(
        "spec.model.torchScript: forward cannot take samples of the data set, a batch of shape " +
        ShapeText(shape) + " (" + errors +
        "); set spec.dataset.featureShape, or save a module for this shape" +
        (form_.precision == Precision::kFloat32
             ? ""
             : ", or use spec.training.precision float32: LibTorch " TORCH_VERSION
               " has not all operations in bfloat16"));
  }

  // In a script dropout draws from the process's own generator, on a GPU from that device's.
  void Seed(uint64_t step_seed) const {
    const uint64_t seed = step_seed ^ kStepStream;
    SeedGenerator(ComputeDevice::kCpu, seed);
    if (device_ != ComputeDevice::kCpu) SeedGenerator(device_, seed);
  }

  Result<at::Tensor> Forward(at::Tensor x, bool training) {
    module_.train(training);
    const torch::jit::GraphOptimizerEnabledGuard plain(false);
    const int64_t samples = x.size(0);
    const c10::IValue value = [&] {
      const AutocastScope precision(form_.precision);
      return module_.forward({std::move(x)});
    }();
    const at::ScalarType lower =
        form_.precision == Precision::kBfloat16 ? at::kBFloat16 : at::kFloat;
    if (!value.isTensor() ||
        (value.toTensor().scalar_type() != at::kFloat && value.toTensor().scalar_type() != lower)) {
      return InvalidArgumentError(
          "spec.model.torchScript: forward must give one float32 tensor, not " + value.tagKind());
    }
    at::Tensor outputs = value.toTensor().to(at::kFloat);
    if (outputs.dim() == 1 && form_.outputs == 1) outputs = outputs.unsqueeze(1);
    if (outputs.sizes() == c10::IntArrayRef({samples, form_.outputs})) return outputs;
    const bool has_more =
        outputs.dim() == 2 && outputs.size(0) == samples && outputs.size(1) > form_.outputs;
    if (form_.more_classes && has_more) return outputs;
    return InvalidArgumentError("spec.model.torchScript: forward gives outputs of shape " +
                                ShapeText(outputs.sizes()) + " for " + std::to_string(samples) +
                                " samples, and the loss needs " + std::to_string(form_.outputs) +
                                " a sample" +
                                (form_.loss == Loss::kCrossEntropy ? ", one a class" : "") +
                                "; change the module's last layer or spec.training.loss");
  }

  torch::jit::Module module_;
  const OutputForm form_;
  const std::vector<int64_t> sample_shape_;
  const ComputeDevice device_;
  const std::function<void(uint64_t seed)> initialize_;
  InputType input_ = InputType::kFloat32;
  ParameterManifest manifest_;
  std::optional<ParameterMemory> memory_;  // once the parameters are found
  TrainedBuffers buffers_;
  std::vector<float> initial_;
  std::vector<float> initial_buffers_;
};

// Runs nothing of the archive. LibTorch finds what it runs by the same reader.
Status CheckCode(const std::string& archive) {
  TORCH_CHECK(archive.starts_with(kArchiveBegin), "it is no zip archive");
  std::istringstream stream(archive);
  caffe2::serialize::PyTorchStreamReader reader(&stream);
  for (const std::string& member : reader.getAllRecords()) {
    if (!IsCodeOfModule(member)) continue;
    const auto [bytes, size] = reader.getRecord(member);
    LDNN_RETURN_IF_ERROR(CheckCodeOfModule(member, {static_cast<const char*>(bytes.get()), size})
                             .WithContext("spec.model.torchScript"));
  }
  return OkStatus();
}

}  // namespace

Result<std::unique_ptr<TrainableModel>> MakeScriptModel(
    const torch::jit::Module& module, const OutputForm& form,
    const std::vector<int64_t>& sample_shape, ComputeDevice device,
    std::function<void(uint64_t seed)> initialize) {
  auto model =
      std::make_unique<ScriptModel>(module, form, sample_shape, device, std::move(initialize));
  LDNN_RETURN_IF_ERROR(model->Prepare());
  return std::unique_ptr<TrainableModel>(std::move(model));
}

Result<std::unique_ptr<TrainableModel>> MakeTorchScriptModel(const std::string& archive,
                                                             const TrainingConfig& config,
                                                             const DatasetInfo& dataset,
                                                             int threads, ComputeDevice device) {
  if (threads < 1) return InvalidArgumentError("a model needs at least 1 thread");
  LDNN_ASSIGN_OR_RETURN(OutputForm form, FindOutputForm(config.loss, dataset));
  LDNN_RETURN_IF_ERROR(SetLossOptions(config, &form));
  form.more_classes = dataset.more_classes;
  LDNN_RETURN_IF_ERROR(PrepareDevice(device, config.precision));
  std::optional<torch::jit::Module> module;
  try {
    ConfigureTorch(threads);
    LDNN_RETURN_IF_ERROR(CheckCode(archive));
    std::istringstream stream(archive);
    module = torch::jit::load(stream, TorchDevice(device));
  } catch (const std::exception& error) {
    return InvalidArgumentError(
        "spec.model.torchScript.uri: " + config.model.torch_script_uri +
        " is no TorchScript archive that LibTorch " TORCH_VERSION " reads (" +
        TorchErrorText(error) + "); save it with torch.jit.script(module).save(FILE)");
  }
  try {
    LDNN_RETURN_IF_ERROR(CheckOperators(*module));
    return MakeScriptModel(*module, form, dataset.feature_shape, device, {});
  } catch (const std::exception& error) {
    return InvalidArgumentError("spec.model.torchScript.uri: " + config.model.torch_script_uri +
                                " cannot be trained (" + TorchErrorText(error) + ")");
  }
}

}  // namespace lambdadnn
