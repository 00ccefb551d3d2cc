// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/torch_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/base/random.h"
#include "trainer_function/model/blas.h"

namespace lambdadnn {
namespace {

struct Fixture {
  TrainingConfig config;
  DatasetInfo dataset;
  std::unique_ptr<TrainableModel> Make() const {
    auto model = MakeTorchModel(config, dataset, 1);
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

Fixture MakeFixture(std::string model, Loss loss = Loss::kCrossEntropy) {
  Fixture fixture;
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

std::vector<float> Parameters(const TrainableModel& model) {
  std::vector<float> flat(static_cast<size_t>(model.size()));
  model.GetParameters(flat);
  return flat;
}

double LossSum(TrainableModel& model, const Batch& batch) {
  const auto result = model.Evaluate(batch);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? result->loss_sum : std::nan("");
}

class EveryModelAndLoss : public testing::TestWithParam<std::tuple<const char*, Loss>> {};

// Slopes along random directions against differences of the loss.
TEST_P(EveryModelAndLoss, GradientIsTheSlopeOfTheSummedLoss) {
  const Fixture fixture = MakeFixture(std::get<0>(GetParam()), std::get<1>(GetParam()));
  const auto model = fixture.Make();
  const Batch batch = fixture.MakeBatch(6);
  const std::vector<float> start = Parameters(*model);
  std::vector<float> gradient(start.size());
  const auto step = model->ForwardBackward(batch, 1, gradient);
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  EXPECT_EQ(step->samples, 6);
  EXPECT_NEAR(step->loss_sum, LossSum(*model, batch), 1e-5 * std::abs(step->loss_sum));
  double norm = 0;
  for (const float slope : gradient) norm += static_cast<double>(slope) * slope;
  norm = std::sqrt(norm);
  SeededRandom random(11);
  // Along random halves of the gradient, a step short enough to cross few kinks.
  for (int direction = 0; direction < 4; ++direction) {
    std::vector<float> forward = start;
    std::vector<float> backward = start;
    double expected = 0;
    for (size_t i = 0; i < start.size(); ++i) {
      if (random.Below(2) == 0) continue;
      const auto delta = static_cast<float>(3e-3 * gradient[i] / norm);
      forward[i] += delta;
      backward[i] -= delta;
      expected += gradient[i] * (static_cast<double>(forward[i]) - backward[i]);
    }
    model->SetParameters(forward);
    const double high = LossSum(*model, batch);
    model->SetParameters(backward);
    EXPECT_NEAR(high - LossSum(*model, batch), expected, 0.02 * expected);
  }
}

TEST_P(EveryModelAndLoss, GradientsOfPartsAddUpToTheGradientOfTheWhole) {
  const Fixture fixture = MakeFixture(std::get<0>(GetParam()), std::get<1>(GetParam()));
  const auto model = fixture.Make();
  const Batch whole = fixture.MakeBatch(5);
  std::vector<float> expected(static_cast<size_t>(model->size()));
  ASSERT_TRUE(model->ForwardBackward(whole, 1, expected).ok());
  std::vector<float> sum(expected.size());
  for (size_t i = 0; i < 5; ++i) {
    const size_t features = whole.features.size() / 5;
    const size_t targets = whole.targets.size() / 5;
    Batch one;
    one.samples = 1;
    one.feature_shape = whole.feature_shape;
    one.features.assign(whole.features.begin() + static_cast<std::ptrdiff_t>(i * features),
                        whole.features.begin() + static_cast<std::ptrdiff_t>((i + 1) * features));
    if (!whole.labels.empty()) one.labels = {whole.labels[i]};
    one.targets.assign(whole.targets.begin() + static_cast<std::ptrdiff_t>(i * targets),
                       whole.targets.begin() + static_cast<std::ptrdiff_t>((i + 1) * targets));
    std::vector<float> part(expected.size());
    ASSERT_TRUE(model->ForwardBackward(one, 1, part).ok());
    for (size_t j = 0; j < sum.size(); ++j) sum[j] += part[j];
  }
  for (size_t j = 0; j < sum.size(); ++j) ASSERT_NEAR(sum[j], expected[j], 1e-4) << j;
}

TEST_P(EveryModelAndLoss, StepsAndEvaluationsAreBitIdentical) {
  const Fixture fixture = MakeFixture(std::get<0>(GetParam()), std::get<1>(GetParam()));
  const auto model = fixture.Make();
  const auto twin = fixture.Make();
  const Batch batch = fixture.MakeBatch(6);
  std::vector<float> gradient(static_cast<size_t>(model->size()));
  std::vector<float> other(gradient.size());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(model->ForwardBackward(batch, 5, gradient).ok());
    LossSum(*twin, batch);  // an evaluation in between changes nothing
    ASSERT_TRUE(twin->ForwardBackward(batch, 5, other).ok());
    EXPECT_EQ(gradient, other);
  }
  EXPECT_EQ(Parameters(*model), Parameters(*twin));
}

INSTANTIATE_TEST_SUITE_P(All, EveryModelAndLoss,
                         testing::Combine(testing::Values("mlp", "cnn", "cnn1d", "logistic"),
                                          testing::Values(Loss::kCrossEntropy, Loss::kMse,
                                                          Loss::kBceWithLogits)),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param)) + "_" +
                                  std::string(EnumName(std::get<1>(instance.param)));
                         });

TEST(TorchModel, BatchOfZeroSamplesGivesZeroGradient) {
  const Fixture fixture = MakeFixture("cnn");
  const auto model = fixture.Make();
  std::vector<float> gradient(static_cast<size_t>(model->size()), 9.0f);
  const auto step = model->ForwardBackward(fixture.MakeBatch(0), 1, gradient);
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->samples, 0);
  EXPECT_EQ(step->loss_sum, 0);
  EXPECT_EQ(gradient, std::vector<float>(gradient.size()));
  const auto evaluation = model->Evaluate(fixture.MakeBatch(0));
  ASSERT_TRUE(evaluation.ok());
  EXPECT_EQ(evaluation->samples, 0);
}

TEST(TorchModel, DropoutDrawsFromTheStepSeedAlone) {
  Fixture fixture = MakeFixture("mlp");
  fixture.config.model.parameters["dropout"] = {0.5};
  const auto model = fixture.Make();
  const Batch batch = fixture.MakeBatch(8);
  std::vector<float> first(static_cast<size_t>(model->size()));
  std::vector<float> other(first.size());
  std::vector<float> again(first.size());
  ASSERT_TRUE(model->ForwardBackward(batch, 1, first).ok());
  ASSERT_TRUE(model->ForwardBackward(batch, 2, other).ok());
  ASSERT_TRUE(model->ForwardBackward(batch, 1, again).ok());
  EXPECT_NE(first, other);
  EXPECT_EQ(first, again);
  EXPECT_EQ(LossSum(*model, batch), LossSum(*model, batch));
}

TEST(TorchModel, SetParametersReturnsTheSameFromGet) {
  const auto model = MakeFixture("cnn").Make();
  std::vector<float> values(static_cast<size_t>(model->size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.25f;
  model->SetParameters(values);
  EXPECT_EQ(Parameters(*model), values);
}

TEST(TorchModel, InitializationDependsOnTheSeedOnly) {
  const auto model = MakeFixture("cnn").Make();
  const std::vector<float> first = Parameters(*model);
  model->Initialize(8);
  EXPECT_NE(Parameters(*model), first);
  model->Initialize(7);
  EXPECT_EQ(Parameters(*model), first);
}

TEST(TorchModel, CountsCorrectSamples) {
  Fixture fixture = MakeFixture("logistic");
  fixture.dataset.feature_shape = {2};
  fixture.dataset.classes = 2;
  const auto model = fixture.Make();
  model->SetParameters(std::vector<float>{1, 0, 0, 1, 0, 0});  // class = the larger feature
  Batch batch;
  batch.samples = 3;
  batch.feature_shape = {2};
  batch.features = {2, 1, 1, 2, 3, 0};
  batch.labels = {0, 1, 1};
  const auto result = model->Evaluate(batch);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->correct, 2);
  EXPECT_EQ(result->samples, 3);
}

TEST(TorchModel, RefusesBatchesThatDoNotFit) {
  const Fixture fixture = MakeFixture("cnn");
  const auto model = fixture.Make();
  std::vector<float> gradient(static_cast<size_t>(model->size()));
  Batch wrong_shape = fixture.MakeBatch(2);
  wrong_shape.feature_shape = {1, 10, 10};
  Batch short_features = fixture.MakeBatch(2);
  short_features.features.pop_back();
  Batch missing_label = fixture.MakeBatch(2);
  missing_label.labels.pop_back();
  Batch large_label = fixture.MakeBatch(2);
  large_label.labels[1] = 10;
  Batch negative_label = fixture.MakeBatch(2);
  negative_label.labels[0] = -1;
  for (const Batch* batch :
       {&wrong_shape, &short_features, &missing_label, &large_label, &negative_label}) {
    EXPECT_EQ(model->ForwardBackward(*batch, 1, gradient).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(model->Evaluate(*batch).status().code(), StatusCode::kInvalidArgument);
  }
}

TEST(TorchModel, ExportsAnArchive) {
  for (const char* name : {"mlp", "cnn", "cnn1d", "logistic"}) {
    const auto archive = MakeFixture(name).Make()->ExportTorchScript();
    ASSERT_TRUE(archive.ok()) << archive.status().ToString();
    EXPECT_EQ(archive->substr(0, 2), "PK");
  }
}

TEST(TorchModel, SaysWhatDecidesTheBits) {
#ifdef __aarch64__
  EXPECT_THAT(IsaLevel(), testing::AnyOf("neon", testing::StartsWith("sve")));
#else
  EXPECT_THAT(IsaLevel(), testing::AnyOf("default", "avx2", "avx512"));
#endif
  EXPECT_THAT(TorchVersion(), testing::MatchesRegex("[0-9]+[.][0-9]+.*"));
  EXPECT_FALSE(BlasDescription().empty());
  EXPECT_EQ(BlasDescription().find(BlasName()), 0u);
  EXPECT_EQ(BlasName().find('/'), std::string::npos);
  EXPECT_EQ(BlasWarning().has_value(), BlasDescription().starts_with("reference"));
  // Upstream's LibTorch brings a BLAS, so there is no advice to install another.
  if (!TorchVersion().starts_with("1.")) {
    EXPECT_THAT(BlasDescription(), testing::AnyOf("built in", testing::HasSubstr("nvpl")));
  }
}

TEST(TorchModel, ProductsAreWhatALoopComputes) { EXPECT_TRUE(CheckProducts().ok()); }

TEST(TorchModel, NeedsAThread) {
  const Fixture fixture = MakeFixture("cnn");
  EXPECT_EQ(MakeTorchModel(fixture.config, fixture.dataset, 0).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lambdadnn
