// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_training.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/base/random.h"

namespace lambdadnn::simulation {
namespace {

// Gradients repeat with this period over the vector, beside what the parameters add.
constexpr int64_t kPattern = 32;
// Zeros between parameters and buffers, less than a block.
constexpr int64_t kPadding = 3;

int64_t SmallInteger(uint64_t bits) { return static_cast<int64_t>(bits % 17) - 8; }

// What a step adds for the value before it.
int64_t StateOf(float value) {
  return static_cast<int64_t>(std::lround(std::fmod(value * 16, 8.0f)));
}

class SimModel final : public TrainableModel {
 public:
  SimModel(int64_t parameters, int64_t buffers, std::function<void(int64_t)> compute)
      : compute_(std::move(compute)),
        values_(static_cast<size_t>(parameters)),
        buffers_(static_cast<size_t>(buffers)) {
    const int64_t weights = (parameters + 1) / 2;
    manifest_.push_back({"layer.weight", {weights}, 0, weights});
    if (parameters > weights) {
      manifest_.push_back({"layer.bias", {parameters - weights}, weights, parameters - weights});
    }
  }

  const ParameterManifest& manifest() const override { return manifest_; }

  void Initialize(uint64_t seed) override {
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = static_cast<float>(SmallInteger(MixSeed({seed, i}))) / 8;
    }
    std::fill(buffers_.begin(), buffers_.end(), 1.0f);
  }
  void SetParameters(const SplitVector& flat) override {
    values_.resize(static_cast<size_t>(flat.size()));
    flat.CopyTo(0, values_);
  }
  void GetParameters(std::span<float> flat) const override {
    std::copy(values_.begin(), values_.end(), flat.begin());
  }
  int64_t buffer_size() const override { return std::ssize(buffers_); }
  void SetBuffers(std::span<const float> flat, int64_t) override {
    buffers_.assign(flat.begin(), flat.end());
  }
  void GetBuffers(std::span<float> flat) const override {
    std::copy(buffers_.begin(), buffers_.end(), flat.begin());
  }

  Result<StepResult> ForwardBackward(const Batch& batch, uint64_t step_seed,
                                     std::span<float> gradient) override {
    compute_(batch.samples);
    std::array<int64_t, kPattern> pattern{};
    for (const float sample : batch.features) {
      uint64_t bits = MixSeed({static_cast<uint64_t>(sample)});
      for (int64_t& sum : pattern) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        sum += SmallInteger(bits >> 33);
      }
    }
    // Stands for dropout: a draw that must be the same whenever the step is repeated.
    const int64_t drawn = batch.samples == 0 ? 0 : SmallInteger(step_seed);
    for (size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] =
          static_cast<float>(pattern[i % kPattern] + drawn + batch.samples * StateOf(values_[i]));
    }
    for (size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i] = static_cast<float>(pattern[i % kPattern] + StateOf(buffers_[i]));
    }
    return StepResult{LossSum(batch), batch.samples};
  }

  Result<EvaluationResult> Evaluate(const Batch& batch) override {
    return EvaluationResult{0, LossSum(batch), batch.samples / 2, batch.samples, {}, {}, {}};
  }
  Result<std::string> ExportTorchScript() override {
    return UnimplementedError("a simulated model has no TorchScript");
  }

 private:
  double LossSum(const Batch& batch) const {
    const float first = values_.empty() ? 0 : std::fmod(std::abs(values_[0]), 4.0f);
    return static_cast<double>(batch.samples) * (1 + std::floor(first * 16) / 16.0);
  }

  std::function<void(int64_t)> compute_;
  ParameterManifest manifest_;
  std::vector<float> values_;
  std::vector<float> buffers_;
};

class SimDataset final : public Dataset {
 public:
  SimDataset(int64_t samples, int64_t test_samples) {
    info_.samples = samples;
    info_.test_samples = test_samples;
    info_.feature_shape = {1};
    info_.classes = 2;
    info_.bytes = samples * 8;
  }
  const DatasetInfo& info() const override { return info_; }
  Status Load(std::span<const Range> sample_ranges) override {
    ranges_.insert(ranges_.end(), sample_ranges.begin(), sample_ranges.end());
    return OkStatus();
  }
  Status LoadTest(Range) override { return OkStatus(); }
  Result<Batch> Read(std::span<const int64_t> indices, uint64_t) const override {
    Batch batch;
    batch.samples = static_cast<int64_t>(indices.size());
    batch.feature_shape = info_.feature_shape;
    for (const int64_t index : indices) {
      const bool loaded = std::any_of(ranges_.begin(), ranges_.end(), [index](const Range& range) {
        return range.begin <= index && index < range.end;
      });
      if (!loaded) return InternalError("sample " + std::to_string(index) + " was not loaded");
      batch.features.push_back(static_cast<float>(index));
      batch.labels.push_back(index % 2);
    }
    return batch;
  }
  Result<Batch> ReadTest(Range samples) const override {
    Batch batch;
    batch.samples = samples.size();
    batch.feature_shape = info_.feature_shape;
    batch.features.resize(static_cast<size_t>(samples.size()));
    batch.labels.resize(static_cast<size_t>(samples.size()));
    return batch;
  }

 private:
  DatasetInfo info_;
  std::vector<Range> ranges_;
};

}  // namespace

std::unique_ptr<TrainableModel> MakeSimModel(int64_t vector_elements, int64_t buffers,
                                             std::function<void(int64_t samples)> compute) {
  const int64_t parameters = buffers == 0 ? vector_elements : vector_elements - buffers - kPadding;
  return std::make_unique<SimModel>(parameters, buffers, std::move(compute));
}

std::unique_ptr<Dataset> MakeSimDataset(int64_t samples, int64_t test_samples) {
  return std::make_unique<SimDataset>(samples, test_samples);
}

}  // namespace lambdadnn::simulation
