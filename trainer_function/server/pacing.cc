// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/pacing.h"

#include <utility>

namespace lambdadnn {
namespace {

class PacedModel final : public TrainableModel {
 public:
  PacedModel(std::unique_ptr<TrainableModel> model, std::function<void()> pace)
      : model_(std::move(model)), pace_(std::move(pace)) {}

  const ParameterManifest& manifest() const override { return model_->manifest(); }
  void Initialize(uint64_t seed) override { model_->Initialize(seed); }
  void SetParameters(const SplitVector& flat) override { model_->SetParameters(flat); }
  void GetParameters(std::span<float> flat) const override { model_->GetParameters(flat); }
  int64_t buffer_size() const override { return model_->buffer_size(); }
  void SetBuffers(std::span<const float> flat, int64_t steps) override {
    model_->SetBuffers(flat, steps);
  }
  void GetBuffers(std::span<float> flat) const override { model_->GetBuffers(flat); }
  Result<std::vector<StateTensor>> State() const override { return model_->State(); }
  Result<StepResult> ForwardBackward(const Batch& batch, uint64_t step_seed,
                                     std::span<float> gradient) override {
    Result<StepResult> result = model_->ForwardBackward(batch, step_seed, gradient);
    pace_();
    return result;
  }
  Result<EvaluationResult> Evaluate(const Batch& batch) override {
    Result<EvaluationResult> result = model_->Evaluate(batch);
    pace_();
    return result;
  }
  Result<std::string> ExportTorchScript() override { return model_->ExportTorchScript(); }

 private:
  const std::unique_ptr<TrainableModel> model_;
  const std::function<void()> pace_;
};

class PacedStore final : public ObjectStore {
 public:
  PacedStore(std::unique_ptr<ObjectStore> store, std::function<void()> pace)
      : store_(std::move(store)), pace_(std::move(pace)) {}

  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override {
    pace_();
    return store_->Put(key, parts, options);
  }
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override {
    return store_->Get(key, range);
  }
  Result<ObjectInfo> Head(std::string_view key) override { return store_->Head(key); }
  Status Delete(std::string_view key) override { return store_->Delete(key); }
  Status DeleteMany(std::span<const std::string> keys) override { return store_->DeleteMany(keys); }
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override {
    return store_->List(prefix, start_after, limit);
  }
  std::unique_ptr<ArrivalWatch> Watch(std::string_view key) override { return store_->Watch(key); }
  bool SupportsPutIfAbsent() const override { return store_->SupportsPutIfAbsent(); }
  std::string Describe() const override { return store_->Describe(); }
  StoreCounters Counts() const override { return store_->Counts(); }

 private:
  const std::unique_ptr<ObjectStore> store_;
  const std::function<void()> pace_;
};

}  // namespace

std::unique_ptr<TrainableModel> PaceModel(std::unique_ptr<TrainableModel> model,
                                          std::function<void()> pace) {
  return std::make_unique<PacedModel>(std::move(model), std::move(pace));
}

std::unique_ptr<ObjectStore> PaceStore(std::unique_ptr<ObjectStore> store,
                                       std::function<void()> pace) {
  return std::make_unique<PacedStore>(std::move(store), std::move(pace));
}

void AddPacing(CpuPacer& pacer, SliceEnvironment* environment) {
  const std::function<void()> pace = [&pacer] { pacer.Pace(); };
  environment->throttled_seconds = [&pacer, before = environment->throttled_seconds] {
    return ToSeconds(pacer.slept()) + (before ? before() : 0);
  };
  environment->pace = [pace, before = environment->pace] {
    if (before) before();
    pace();
  };
  environment->open_store =
      [pace, open_store = environment->open_store](
          const StoreReference& reference) -> Result<std::unique_ptr<ObjectStore>> {
    LDNN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store, open_store(reference));
    return PaceStore(std::move(store), pace);
  };
  if (!environment->make_model) return;
  environment->make_model = [pace, make_model = environment->make_model](
                                const TrainingConfig& config, const DatasetInfo& dataset,
                                int threads) -> Result<std::unique_ptr<TrainableModel>> {
    LDNN_ASSIGN_OR_RETURN(std::unique_ptr<TrainableModel> model,
                          make_model(config, dataset, threads));
    return PaceModel(std::move(model), pace);
  };
}

}  // namespace lambdadnn
