// SPDX-License-Identifier: Apache-2.0
// Small models of every kind on LibTorch, with batches that fit them, for tests. Link
// lambdadnn_torch_model.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "trainer_function/model/torch_model.h"

namespace lambdadnn {

struct ModelFixture {
  TrainingConfig config;
  DatasetInfo dataset;
  // Initialised from the seed 7.
  std::unique_ptr<TrainableModel> Make(ComputeDevice device = ComputeDevice::kCpu) const {
    auto model = MakeTorchModel(config, dataset, 1, device);
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    auto made = std::move(model).value();
    made->Initialize(7);
    return made;
  }
  Batch MakeBatch(int64_t samples, uint64_t seed = 3) const {
    SeededRandom random(seed);
    Batch batch;
    batch.samples = samples;
    batch.feature_shape = dataset.feature_shape;
    int64_t elements = samples;
    for (const int64_t dimension : dataset.feature_shape) elements *= dimension;
    for (int64_t i = 0; i < elements; ++i) {
      batch.features.push_back(static_cast<float>(random.Uniform()) - 0.5f);
    }
    for (int64_t i = 0; i < samples; ++i) {
      if (dataset.classes > 0) {
        batch.labels.push_back(
            static_cast<int64_t>(random.Below(static_cast<uint64_t>(dataset.classes))));
      }
      for (int64_t j = 0; j < dataset.target_size && dataset.classes == 0; ++j) {
        batch.targets.push_back(static_cast<float>(random.Below(2)));
      }
    }
    return batch;
  }
};

inline ModelFixture MakeFixture(std::string model, Loss loss = Loss::kCrossEntropy) {
  ModelFixture fixture;
  fixture.config.model.name = std::move(model);
  fixture.config.loss = loss;
  fixture.dataset.samples = 100;
  fixture.dataset.feature_shape = {1, 12, 12};
  fixture.dataset.classes = 10;
  if (fixture.config.model.name == "cnn") {
    fixture.config.model.parameters = {
        {"channels", {3, 4}}, {"kernel", {3}}, {"padding", {1}}, {"hidden", {9}}};
  }
  if (fixture.config.model.name == "cnn1d") fixture.dataset.feature_shape = {2, 20};
  if (fixture.config.model.name == "mlp") fixture.config.model.parameters = {{"hidden", {11, 7}}};
  if (loss != Loss::kCrossEntropy) {
    fixture.dataset.classes = 0;
    fixture.dataset.target_size = 3;
  }
  return fixture;
}

inline std::vector<float> Parameters(const TrainableModel& model) {
  std::vector<float> flat(static_cast<size_t>(model.size()));
  model.GetParameters(flat);
  return flat;
}

inline double LossSum(TrainableModel& model, const Batch& batch) {
  const auto result = model.Evaluate(batch);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? result->loss_sum : std::nan("");
}

}  // namespace lambdadnn
