// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/torch_model.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "common/base/random.h"
#include "tests/support/model_fixture.h"
#include "trainer_function/model/blas.h"
#include "trainer_function/model/torch_device.h"

namespace lambdadnn {
namespace {

// As a model that is kept from slice to slice is.
TEST(TorchModel, ComputesWithItsNumberOfThreadsInWhateverThreadItIsUsed) {
  const ModelFixture fixture = MakeFixture("mlp", Loss::kCrossEntropy);
  const auto model = fixture.Make();
  const Batch batch = fixture.MakeBatch(2);
  const int made_with = at::get_num_threads();
  const auto threads_after = [&](const auto& compute) {
    int threads = 0;
    std::thread([&] {
      at::set_num_threads(made_with + 1);
      EXPECT_TRUE(compute().ok());
      threads = at::get_num_threads();
    }).join();
    return threads;
  };
  std::vector<float> gradient(static_cast<size_t>(model->size()));
  EXPECT_EQ(threads_after([&] { return model->ForwardBackward(batch, 1, gradient).status(); }),
            made_with);
  EXPECT_EQ(threads_after([&] { return model->Evaluate(batch).status(); }), made_with);
}

class EveryModelAndLoss : public testing::TestWithParam<std::tuple<const char*, Loss>> {};

// Slopes along random directions against differences of the loss.
TEST_P(EveryModelAndLoss, GradientIsTheSlopeOfTheSummedLoss) {
  const ModelFixture fixture = MakeFixture(std::get<0>(GetParam()), std::get<1>(GetParam()));
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
  const ModelFixture fixture = MakeFixture(std::get<0>(GetParam()), std::get<1>(GetParam()));
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
  const ModelFixture fixture = MakeFixture(std::get<0>(GetParam()), std::get<1>(GetParam()));
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
  const ModelFixture fixture = MakeFixture("cnn");
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

// Of a batch with mixup the loss and its slope are the mean of those of both labels, each with its
// share; so is the sum of the classes' weights.
TEST(TorchModel, MixedLabelsWeighTheLossesOfBoth) {
  for (const Loss loss : {Loss::kCrossEntropy, Loss::kBceWithLogits}) {
    ModelFixture fixture = MakeFixture("mlp", loss);
    if (loss == Loss::kBceWithLogits) fixture.dataset.classes = 2;
    if (loss == Loss::kCrossEntropy) {
      fixture.config.label_smoothing = 0.1;
      fixture.config.class_weights = {};
      for (int i = 0; i < fixture.dataset.classes; ++i) {
        fixture.config.class_weights.push_back(1.0 + 0.5 * i);
      }
    }
    const auto model = fixture.Make();
    Batch own = fixture.MakeBatch(4);
    ASSERT_EQ(own.labels.size(), 4u);
    Batch other = own;
    for (int64_t& label : other.labels) label = (label + 1) % fixture.dataset.classes;
    Batch mixed = own;
    mixed.partner_labels = other.labels;
    mixed.shares.assign(4, 0.75f);
    const auto size = static_cast<size_t>(model->size());
    std::vector<float> of_own(size);
    std::vector<float> of_other(size);
    std::vector<float> of_mixed(size);
    const StepResult first = *model->ForwardBackward(own, 1, of_own);
    const StepResult second = *model->ForwardBackward(other, 1, of_other);
    const StepResult both = *model->ForwardBackward(mixed, 1, of_mixed);
    EXPECT_NE(first.loss_sum, second.loss_sum);
    EXPECT_NEAR(both.loss_sum, 0.75 * first.loss_sum + 0.25 * second.loss_sum, 1e-5);
    EXPECT_DOUBLE_EQ(both.weight_sum, 0.75 * first.weight_sum + 0.25 * second.weight_sum);
    for (size_t i = 0; i < size; ++i) {
      ASSERT_NEAR(of_mixed[i], 0.75f * of_own[i] + 0.25f * of_other[i], 1e-5f) << i;
    }
  }
}

TEST(TorchModel, DropoutDrawsFromTheStepSeedAlone) {
  ModelFixture fixture = MakeFixture("mlp");
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
  ModelFixture fixture = MakeFixture("logistic");
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
  const ModelFixture fixture = MakeFixture("cnn");
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
  const bool is_slow = BlasDescription().starts_with("reference") ||
                       BlasDescription().find(" Prescott ") != std::string::npos;
  EXPECT_EQ(BlasWarning().has_value(), is_slow);
  // Upstream's LibTorch brings a BLAS, so there is no advice to install another.
  if (!TorchVersion().starts_with("1.")) {
    EXPECT_THAT(BlasDescription(), testing::AnyOf("built in", testing::HasSubstr("nvpl")));
  }
}

TEST(TorchModel, SaysWhatToDoAboutAnOpenBlasThatIsOlderThanTheProcessor) {
  const std::string known = "OpenBLAS 0.3.21 DYNAMIC_ARCH Haswell MAX_THREADS=64";
  const std::string unknown = "OpenBLAS 0.3.21 DYNAMIC_ARCH Prescott MAX_THREADS=64";
  EXPECT_FALSE(KernelsWarning(known, "SkylakeX").has_value());
  EXPECT_FALSE(KernelsWarning(unknown, "").has_value());
  EXPECT_FALSE(KernelsWarning("", "SkylakeX").has_value()) << "another BLAS";
  EXPECT_THAT(KernelsWarning(unknown, "SkylakeX").value(),
              testing::AllOf(testing::HasSubstr("takes it for a Prescott of 2004"),
                             testing::HasSubstr("set OPENBLAS_CORETYPE=SkylakeX, or install")));
}

TEST(TorchModel, FingerprintOnTheProcessorIsItsInstructionSetLibTorchAndBlas) {
  EXPECT_TRUE(PrepareDevice(ComputeDevice::kCpu).ok());
  const NumericsFingerprint fingerprint = FingerprintOn(ComputeDevice::kCpu);
  EXPECT_EQ(fingerprint.isa, IsaLevel());
  EXPECT_EQ(fingerprint.libtorch, TorchVersion() + ", " + BlasName());
}

TEST(TorchModel, WithoutAUsableGpuTellsWhatToDo) {
  const Status prepared = PrepareDevice(ComputeDevice::kCuda);
  if (prepared.ok()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(prepared.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(prepared.message(), testing::StartsWith("LAMBDADNN_DEVICE=cuda: "));
  EXPECT_THAT(prepared.message(), testing::HasSubstr("; "));
  EXPECT_THAT(prepared.message(), testing::EndsWith(", or train with LAMBDADNN_DEVICE=cpu"));
  const ModelFixture fixture = MakeFixture("cnn");
  const auto model = MakeTorchModel(fixture.config, fixture.dataset, 1, ComputeDevice::kCuda);
  EXPECT_EQ(model.status().message(), prepared.message());
}

TEST(TorchModel, ProductsAreWhatALoopComputes) { EXPECT_TRUE(CheckProducts().ok()); }

TEST(TorchModel, NeedsAThread) {
  const ModelFixture fixture = MakeFixture("cnn");
  EXPECT_EQ(MakeTorchModel(fixture.config, fixture.dataset, 0).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lambdadnn
