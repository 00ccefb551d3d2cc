// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/confined_model.h"

#include <optional>
#include <utility>

#include "common/base/confinement.h"
#include "common/base/text.h"

namespace lambdadnn {
namespace {

// Between two looks at whether the slice is over.
constexpr Duration kLook = std::chrono::milliseconds(200);

// Runs calls, one at a time, on a confined task.
class ConfinedTask {
 public:
  ConfinedTask(Runtime& runtime, ConfinedModelOptions options)
      : clock_(runtime.clock),
        options_(std::move(options)),
        monitor_(runtime.executor.NewMonitor()),
        task_(runtime.executor.Spawn("module", [this] { Run(); })) {}

  ~ConfinedTask() {
    {
      const MonitorLock lock(*monitor_);
      closed_ = true;
      monitor_->NotifyAll();
    }
    task_->Join();
  }

  // Of the task.
  Status Confined() {
    const MonitorLock lock(*monitor_);
    while (!confined_.has_value()) monitor_->Wait();
    return *confined_;
  }

  void Call(const std::function<void()>& call) {
    const MonitorLock lock(*monitor_);
    call_ = &call;
    monitor_->NotifyAll();
    std::optional<Instant> over;
    while (call_ != nullptr) {
      const Instant now = clock_.Now();
      if (!options_.slice_is_over()) {
        over.reset();
      } else if (!over.has_value()) {
        over = now;
      } else if (now - *over >= options_.grace) {
        GiveUp();
        over = now;
      }
      monitor_->WaitUntil(now + kLook);
    }
  }

 private:
  void GiveUp() {
    options_.give_up(
        "spec.model.torchScript: the module has not ended a step " +
        FormatDouble(ToSeconds(options_.grace)) +
        " s after the slice's time was up, and this function ends with it; see that forward ends "
        "whatever the numbers are, or raise the time-out (platform.functionTimeoutSeconds) for "
        "larger steps");
  }

  void Run() {
    const Status confined = ConfineThisThread();
    const MonitorLock lock(*monitor_);
    confined_ = confined;
    monitor_->NotifyAll();
    while (true) {
      while (call_ == nullptr && !closed_) monitor_->Wait();
      if (call_ == nullptr) return;
      monitor_->Unlock();
      (*call_)();
      monitor_->Lock();
      call_ = nullptr;
      monitor_->NotifyAll();
    }
  }

  Clock& clock_;
  const ConfinedModelOptions options_;
  const std::unique_ptr<Monitor> monitor_;  // guards what follows
  std::optional<Status> confined_;
  bool closed_ = false;
  const std::function<void()>* call_ = nullptr;
  const std::unique_ptr<Task> task_;  // the last member: it uses the others
};

class ConfinedModel final : public TrainableModel {
 public:
  ConfinedModel(std::unique_ptr<ConfinedTask> task, std::unique_ptr<TrainableModel> model)
      : task_(std::move(task)), model_(std::move(model)), manifest_(model_->manifest()) {}
  // Its tensors go where they came from.
  ~ConfinedModel() override {
    task_->Call([this] { model_.reset(); });
  }

  const ParameterManifest& manifest() const override { return manifest_; }
  void Initialize(uint64_t seed) override {
    task_->Call([&] { model_->Initialize(seed); });
  }
  void SetParameters(const SplitVector& flat) override {
    task_->Call([&] { model_->SetParameters(flat); });
  }
  void GetParameters(std::span<float> flat) const override {
    task_->Call([&] { model_->GetParameters(flat); });
  }
  int64_t buffer_size() const override { return model_->buffer_size(); }
  void SetBuffers(std::span<const float> flat, int64_t steps) override {
    task_->Call([&] { model_->SetBuffers(flat, steps); });
  }
  void GetBuffers(std::span<float> flat) const override {
    task_->Call([&] { model_->GetBuffers(flat); });
  }
  Result<StepResult> ForwardBackward(const Batch& batch, uint64_t step_seed,
                                     std::span<float> gradient) override {
    return Ask<StepResult>([&] { return model_->ForwardBackward(batch, step_seed, gradient); });
  }
  Result<EvaluationResult> Evaluate(const Batch& batch) override {
    return Ask<EvaluationResult>([&] { return model_->Evaluate(batch); });
  }
  Result<std::vector<StateTensor>> State() const override {
    return Ask<std::vector<StateTensor>>([&] { return model_->State(); });
  }
  Result<std::string> ExportTorchScript() override {
    return Ask<std::string>([&] { return model_->ExportTorchScript(); });
  }

 private:
  template <typename T>
  Result<T> Ask(const std::function<Result<T>()>& question) const {
    std::optional<Result<T>> answer;
    task_->Call([&] { answer = question(); });
    return *std::move(answer);
  }

  const std::unique_ptr<ConfinedTask> task_;
  std::unique_ptr<TrainableModel> model_;
  const ParameterManifest manifest_;
};

}  // namespace

void SliceEnd::Use(Interrupt* of_slice) {
  const std::lock_guard lock(mutex_);
  of_slice_ = of_slice;
}

bool SliceEnd::IsOver() {
  const std::lock_guard lock(mutex_);
  return of_slice_ != nullptr && !of_slice_->Check().ok();
}

Result<std::unique_ptr<TrainableModel>> MakeConfinedModel(Runtime& runtime,
                                                          const ConfinedModelOptions& options,
                                                          const MakeTrainable& make) {
  auto task = std::make_unique<ConfinedTask>(runtime, options);
  LDNN_RETURN_IF_ERROR(
      task->Confined().WithContext("the task that is to run spec.model.torchScript"));
  std::optional<Result<std::unique_ptr<TrainableModel>>> made;
  task->Call([&] { made = make(); });
  if (!made->ok()) return made->status();
  return std::unique_ptr<TrainableModel>(
      std::make_unique<ConfinedModel>(std::move(task), std::move(*made).value()));
}

}  // namespace lambdadnn
