// SPDX-License-Identifier: Apache-2.0
#include "tests/support/arithmetic_model.h"

#include <algorithm>
#include <limits>

#include "common/base/random.h"

namespace lambdadnn {
namespace {

// In [-1, 1), the same everywhere.
float Draw(uint64_t seed) {
  return static_cast<float>(static_cast<double>(MixSeed({seed}) >> 40) * 0x1.0p-23 - 1.0);
}

constexpr float kSeedShare = 0x1.0p-6F;  // of the gradient that depends on the step's seed

}  // namespace

ArithmeticModel::ArithmeticModel(int64_t parameters, int64_t nan_at_version, int64_t buffers)
    : buffers_(static_cast<size_t>(buffers)), nan_at_version_(nan_at_version) {
  const int64_t bias = parameters / 4;
  manifest_ = {{"layer.weight", {parameters - bias}, 0, parameters - bias}};
  if (bias > 0) manifest_.push_back({"layer.bias", {bias}, parameters - bias, bias});
  weights_.resize(static_cast<size_t>(parameters));
  pull_.resize(weights_.size());
  for (size_t i = 0; i < pull_.size(); ++i) pull_[i] = Draw(1'000'000 + i);
}

void ArithmeticModel::SetBuffers(std::span<const float> flat, int64_t steps) {
  LDNN_CHECK(flat.size() == buffers_.size(), "wrong number of elements in buffers");
  std::copy(flat.begin(), flat.end(), buffers_.begin());
  steps_ = steps;
}

void ArithmeticModel::GetBuffers(std::span<float> flat) const {
  std::copy(buffers_.begin(), buffers_.end(), flat.begin());
}

Result<std::vector<StateTensor>> ArithmeticModel::State() const {
  LDNN_ASSIGN_OR_RETURN(std::vector<StateTensor> state, TrainableModel::State());
  if (buffers_.empty()) return state;
  const ByteView values = AsBytes(std::span<const float>(buffers_));
  state.push_back(
      {"layer.mean", ElementType::kF32, {buffer_size()}, Bytes(values.begin(), values.end())});
  Bytes steps(sizeof(int64_t));
  StoreLittleEndian<uint64_t>(steps, 0, static_cast<uint64_t>(steps_));
  state.push_back({"layer.steps", ElementType::kI64, {}, std::move(steps)});
  return state;
}

void ArithmeticModel::Initialize(uint64_t seed) {
  std::fill(buffers_.begin(), buffers_.end(), 1.0F);
  for (size_t i = 0; i < weights_.size(); ++i) weights_[i] = Draw(seed + i);
}

void ArithmeticModel::SetParameters(const SplitVector& flat) {
  LDNN_CHECK(flat.size() == size(), "wrong number of parameters");
  flat.CopyTo(0, weights_);
  ++versions_;
}

void ArithmeticModel::GetParameters(std::span<float> flat) const {
  std::copy(weights_.begin(), weights_.end(), flat.begin());
}

Result<StepResult> ArithmeticModel::ForwardBackward(const Batch& batch, uint64_t step_seed,
                                                    std::span<float> gradient) {
  StepResult result;
  result.samples = batch.samples;
  float sum = 0;
  for (const float feature : batch.features) {
    sum += feature;
    const float error = weights_[0] - pull_[0] * feature;
    result.loss_sum += 0.5 * static_cast<double>(error) * static_cast<double>(error);
  }
  if (batch.samples > 0) sum += kSeedShare * Draw(step_seed);
  const auto count = static_cast<float>(batch.samples);
  for (size_t i = 0; i < buffers_.size() && batch.samples > 0; ++i) {
    buffers_[i] = 0.75F * buffers_[i] + 0.25F * Draw(2'000'000 + i) * (sum / count);
  }
  for (size_t i = 0; i < weights_.size(); ++i) gradient[i] = count * weights_[i] - pull_[i] * sum;
  if (nan_at_version_ >= 0 && versions_ > nan_at_version_) {
    result.loss_sum = std::numeric_limits<double>::quiet_NaN();
  }
  return result;
}

Result<EvaluationResult> ArithmeticModel::Evaluate(const Batch& batch) {
  EvaluationResult result;
  result.samples = batch.samples;
  for (const float feature : batch.features) {
    const float error = weights_[0] - pull_[0] * feature;
    result.loss_sum += static_cast<double>(error) * static_cast<double>(error);
    if (error < 0.5F && error > -0.5F) ++result.correct;
  }
  return result;
}

Result<std::string> ArithmeticModel::ExportTorchScript() {
  return UnimplementedError("the arithmetic model has no TorchScript form");
}

InMemoryDataset::InMemoryDataset(int64_t samples, int64_t test_samples, uint64_t checksum)
    : checksum_(checksum) {
  info_.samples = samples;
  info_.test_samples = test_samples;
  info_.feature_shape = {1};
  info_.bytes = samples * static_cast<int64_t>(sizeof(float));
}

Status InMemoryDataset::Load(std::span<const Range> sample_ranges) {
  loaded_.assign(sample_ranges.begin(), sample_ranges.end());
  return OkStatus();
}

Status InMemoryDataset::LoadTest(Range samples) {
  loaded_test_ = samples;
  return OkStatus();
}

Result<Batch> InMemoryDataset::Read(std::span<const int64_t> indices, uint64_t augment_seed) const {
  Batch batch;
  batch.feature_shape = {1};
  batch.samples = static_cast<int64_t>(indices.size());
  for (const int64_t index : indices) {
    const bool loaded = std::any_of(loaded_.begin(), loaded_.end(), [&](const Range& range) {
      return index >= range.begin && index < range.end;
    });
    if (!loaded) return InternalError("sample " + std::to_string(index) + " was not loaded");
    batch.features.push_back(Draw(static_cast<uint64_t>(index)) +
                             0x1.0p-8F * Draw(augment_seed + static_cast<uint64_t>(index)));
  }
  return batch;
}

Result<Batch> InMemoryDataset::ReadTest(Range samples) const {
  if (samples.begin < loaded_test_.begin || samples.end > loaded_test_.end) {
    return InternalError("test samples were not loaded");
  }
  Batch batch;
  batch.feature_shape = {1};
  batch.samples = samples.size();
  for (int64_t i = samples.begin; i < samples.end; ++i)
    batch.features.push_back(Draw(static_cast<uint64_t>(i) + (uint64_t{1} << 40)));
  return batch;
}

}  // namespace lambdadnn
