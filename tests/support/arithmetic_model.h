// SPDX-License-Identifier: Apache-2.0
// Training without LibTorch, for tests and the simulator: a model of plain float arithmetic whose
// gradient depends on weights, samples and step seed, and a data set in memory that insists on
// being loaded before it is read. Both deterministic to the bit.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer_function/data/dataset.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

// Least squares: parameter i is pulled towards c_i x (feature of the sample), so training
// converges. `nan_at_version`: the loss is not a number once so many SetParameters have been
// counted (for the job's own failures); < 0 = never. Buffer i follows d_i x (mean feature of the
// batch) as batch norm's statistics do, and the model's state counts the training's steps.
class ArithmeticModel final : public TrainableModel {
 public:
  explicit ArithmeticModel(int64_t parameters, int64_t nan_at_version = -1, int64_t buffers = 0);

  const ParameterManifest& manifest() const override { return manifest_; }
  void Initialize(uint64_t seed) override;
  void SetParameters(const SplitVector& flat) override;
  void GetParameters(std::span<float> flat) const override;
  int64_t buffer_size() const override { return std::ssize(buffers_); }
  void SetBuffers(std::span<const float> flat, int64_t steps) override;
  void GetBuffers(std::span<float> flat) const override;
  Result<std::vector<StateTensor>> State() const override;
  Result<StepResult> ForwardBackward(const Batch& batch, uint64_t step_seed,
                                     std::span<float> gradient) override;
  Result<EvaluationResult> Evaluate(const Batch& batch) override;
  Result<std::string> ExportTorchScript() override;

 private:
  ParameterManifest manifest_;
  std::vector<float> weights_;
  std::vector<float> pull_;  // c_i
  std::vector<float> buffers_;
  int64_t steps_ = 0;
  const int64_t nan_at_version_;
  int64_t versions_ = 0;
};

// One feature a sample, a function of its number. It says `checksum` of whatever is loaded; 0 = it
// knows none.
class InMemoryDataset final : public Dataset {
 public:
  InMemoryDataset(int64_t samples, int64_t test_samples, uint64_t checksum = 0);

  const DatasetInfo& info() const override { return info_; }
  Status Load(std::span<const Range> sample_ranges) override;
  Status LoadTest(Range samples) override;
  Result<Batch> Read(std::span<const int64_t> indices, uint64_t augment_seed) const override;
  Result<Batch> ReadTest(Range samples) const override;
  uint64_t loaded_checksum() const override { return checksum_; }

 private:
  const uint64_t checksum_;
  DatasetInfo info_;
  std::vector<Range> loaded_;
  Range loaded_test_;
};

}  // namespace lambdadnn
