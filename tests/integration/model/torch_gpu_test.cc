// SPDX-License-Identifier: Apache-2.0
// Models on a GPU against the same models on the processor. Skipped where no GPU can be used; the
// reason says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "tests/support/model_fixture.h"
#include "trainer_function/model/network_model.h"
#include "trainer_function/model/torch_device.h"
#include "trainer_function/model/torch_script_model.h"

namespace lambdadnn {
namespace {

// Both add up float32 products, in different orders: of a loss, and of a gradient as a whole.
constexpr double kTolerance = 1e-4;
// Of one number, to the largest of its gradient: it may be a small sum of 70,000 large products.
constexpr double kElementTolerance = 1e-3;

// A convolution, a norm of each sample, a linear layer and dropout, as users bring them.
std::string ScriptArchive(double dropout) {
  at::manual_seed(5);
  torch::jit::Module module("Script");
  module.register_attribute("training", c10::BoolType::get(), true);
  const auto add = [&](const char* name, std::vector<int64_t> shape) {
    module.register_parameter(name, at::randn(shape).mul_(0.1).requires_grad_(true), false);
  };
  add("kernel", {3, 1, 3, 3});
  add("shift", {3});
  add("weight", {10, 3 * 6 * 6});
  add("bias", {10});
  add("unused", {7});
  module.register_buffer("scale", at::full({1}, 1.5f));
  module.define(
      "def forward(self, x):\n"
      "    x = torch.conv2d(x, self.kernel, self.shift, [1, 1], [1, 1])\n"
      "    x = torch.max_pool2d(torch.relu(x), [2, 2])\n"
      "    x = torch.layer_norm(torch.flatten(x, 1), [108]) * self.scale\n"
      "    x = torch.dropout(x, " +
      std::to_string(dropout) +
      ", self.training)\n"
      "    return torch.linear(x, self.weight, self.bias)\n");
  std::ostringstream archive;
  module.save(archive);
  return archive.str();
}

std::unique_ptr<TrainableModel> MakeScript(double dropout, ComputeDevice device) {
  const ModelFixture fixture = MakeFixture("cnn");  // for its samples
  auto model =
      MakeTorchScriptModel(ScriptArchive(dropout), fixture.config, fixture.dataset, 1, device);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return model.ok() ? std::move(model).value() : nullptr;
}

struct Step {
  double loss_sum = 0;
  std::vector<float> gradient;
};

Step TakeStep(TrainableModel& model, const Batch& batch, uint64_t seed = 1) {
  Step step;
  step.gradient.assign(static_cast<size_t>(model.size()), 9.0f);
  const auto result = model.ForwardBackward(batch, seed, step.gradient);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  if (result.ok()) step.loss_sum = result->loss_sum;
  return step;
}

double Largest(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

void ExpectNear(const Step& step, const Step& expected) {
  EXPECT_NEAR(step.loss_sum, expected.loss_sum, kTolerance * std::abs(expected.loss_sum));
  const double allowed = kElementTolerance * Largest(expected.gradient);
  EXPECT_GT(allowed, 0);
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.gradient.size(); ++i) {
    const double error = double{step.gradient[i]} - expected.gradient[i];
    ASSERT_LE(std::abs(error), allowed) << i;
    difference += error * error;
    norm += double{expected.gradient[i]} * expected.gradient[i];
  }
  EXPECT_LE(std::sqrt(difference / norm), kTolerance);
}

// Gradient descent over the same batch; weights cross to the GPU in every step. The last loss.
double Train(TrainableModel& model, const Batch& batch, int steps, std::vector<float>* weights) {
  *weights = Parameters(model);
  double loss = 0;
  for (int i = 0; i < steps; ++i) {
    const Step step = TakeStep(model, batch, static_cast<uint64_t>(i));
    loss = step.loss_sum / static_cast<double>(batch.samples);
    for (size_t j = 0; j < weights->size(); ++j) {
      (*weights)[j] -= 0.3f * step.gradient[j] / static_cast<float>(batch.samples);
    }
    model.SetParameters(*weights);
  }
  return loss;
}

// For comparing what two runs of this program write with --gtest_output=json:FILE.
void RecordBits(const std::vector<float>& weights) {
  testing::Test::RecordProperty("bits", Hex64(Xxh3(std::as_bytes(std::span(weights)))));
}

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    const Status status = PrepareDevice(ComputeDevice::kCuda);
    if (!status.ok()) GTEST_SKIP() << status.message();
  }
};

class GpuEveryModelAndLoss : public Gpu,
                             public testing::WithParamInterface<std::tuple<const char*, Loss>> {
 protected:
  ModelFixture fixture_ = MakeFixture(std::get<0>(GetParam()), std::get<1>(GetParam()));
};

TEST_P(GpuEveryModelAndLoss, IsCloseToTheProcessor) {
  const auto gpu = fixture_.Make(ComputeDevice::kCuda);
  const auto cpu = fixture_.Make();
  EXPECT_EQ(Parameters(*gpu), Parameters(*cpu));  // the same start, to the bit
  const Batch batch = fixture_.MakeBatch(33);
  ExpectNear(TakeStep(*gpu, batch), TakeStep(*cpu, batch));
  const auto score = gpu->Evaluate(batch);
  const auto expected = cpu->Evaluate(batch);
  ASSERT_TRUE(score.ok() && expected.ok());
  EXPECT_NEAR(score->loss_sum, expected->loss_sum, kTolerance * std::abs(expected->loss_sum));
  EXPECT_EQ(score->correct, expected->correct);
  EXPECT_EQ(score->samples, 33);
}

TEST_P(GpuEveryModelAndLoss, TrainsToTheSameBitsTwice) {
  const Batch batch = fixture_.MakeBatch(64);
  std::vector<float> weights;
  std::vector<float> again;
  const auto model = fixture_.Make(ComputeDevice::kCuda);
  const double before = LossSum(*model, batch) / 64;
  const double loss = Train(*model, batch, 40, &weights);
  EXPECT_LT(loss, before);
  EXPECT_NEAR(loss, Train(*fixture_.Make(), batch, 40, &again), 1e-3 * loss);  // on the processor
  const auto twin = fixture_.Make(ComputeDevice::kCuda);
  EXPECT_EQ(Train(*twin, batch, 40, &again), loss);
  EXPECT_EQ(weights, again);
  EXPECT_EQ(Parameters(*twin), weights);
  RecordBits(weights);
}

INSTANTIATE_TEST_SUITE_P(All, GpuEveryModelAndLoss,
                         testing::Combine(testing::Values("mlp", "cnn", "cnn1d", "logistic"),
                                          testing::Values(Loss::kCrossEntropy, Loss::kMse,
                                                          Loss::kBceWithLogits)),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param)) + "_" +
                                  std::string(EnumName(std::get<1>(instance.param)));
                         });

// What the next tests compare with, on every machine.
TEST(Processor, TrainsTheScript) {
  const auto model = MakeScript(0.2, ComputeDevice::kCpu);
  ASSERT_NE(model, nullptr);
  const Batch batch = MakeFixture("cnn").MakeBatch(64);
  const double before = LossSum(*model, batch) / 64;
  std::vector<float> weights;
  EXPECT_LT(Train(*model, batch, 60, &weights), 0.8 * before);
}

// The networks as they are by default, whose kernels are others than those of the small ones.
TEST_F(Gpu, GradientsStayCloseWhileTheDefaultNetworksTrain) {
  for (const char* name : {"mlp", "cnn", "cnn1d", "logistic"}) {
    SCOPED_TRACE(name);
    ModelFixture fixture = MakeFixture(name);
    fixture.config.model.parameters.clear();
    fixture.dataset.feature_shape = {1, 28, 28};
    if (fixture.config.model.name == "cnn1d") fixture.dataset.feature_shape = {1, 128};
    const auto gpu = fixture.Make(ComputeDevice::kCuda);
    const auto cpu = fixture.Make();
    std::vector<float> weights = Parameters(*cpu);
    for (uint64_t i = 0; i < 20; ++i) {
      const Batch batch = fixture.MakeBatch(120, i);
      const Step expected = TakeStep(*cpu, batch, i);
      ExpectNear(TakeStep(*gpu, batch, i), expected);
      for (size_t j = 0; j < weights.size(); ++j) weights[j] -= 1e-3f * expected.gradient[j];
      cpu->SetParameters(weights);
      gpu->SetParameters(weights);
    }
  }
}

TEST_F(Gpu, ScriptIsCloseToTheProcessor) {
  const auto gpu = MakeScript(0, ComputeDevice::kCuda);
  const auto cpu = MakeScript(0, ComputeDevice::kCpu);
  ASSERT_TRUE(gpu != nullptr && cpu != nullptr);
  EXPECT_EQ(gpu->manifest(), cpu->manifest());
  EXPECT_EQ(Parameters(*gpu), Parameters(*cpu));
  const Batch batch = MakeFixture("cnn").MakeBatch(33);
  const Step step = TakeStep(*gpu, batch);
  ExpectNear(step, TakeStep(*cpu, batch));
  EXPECT_EQ(std::count(step.gradient.end() - 7, step.gradient.end(), 0.0f), 7);  // `unused`
  EXPECT_NEAR(LossSum(*gpu, batch), LossSum(*cpu, batch), kTolerance * LossSum(*cpu, batch));
}

TEST_F(Gpu, ScriptTrainsToTheSameBitsTwice) {
  const Batch batch = MakeFixture("cnn").MakeBatch(64);
  std::vector<float> weights;
  std::vector<float> again;
  const auto model = MakeScript(0.2, ComputeDevice::kCuda);
  const auto twin = MakeScript(0.2, ComputeDevice::kCuda);
  ASSERT_TRUE(model != nullptr && twin != nullptr);
  const double before = LossSum(*model, batch) / 64;
  const double loss = Train(*model, batch, 60, &weights);
  EXPECT_LT(loss, 0.8 * before);
  EXPECT_EQ(Train(*twin, batch, 60, &again), loss);
  EXPECT_EQ(weights, again);
  RecordBits(weights);
}

struct NetworkCase {
  const char* name;
  std::map<std::string, std::vector<double>> parameters;
  std::vector<int64_t> sample_shape;
};

// The built-in networks, which are TorchScript: convolutions of many channels, batch norm and its
// buffers, embeddings.
class GpuEveryNetwork : public Gpu, public testing::WithParamInterface<NetworkCase> {
 protected:
  std::unique_ptr<TrainableModel> Make(ComputeDevice device) const {
    ModelFixture fixture;
    fixture.config.model.name = GetParam().name;
    fixture.config.model.parameters = {GetParam().parameters.begin(), GetParam().parameters.end()};
    fixture.config.loss = Loss::kCrossEntropy;
    fixture.dataset = Data().dataset;
    auto model = MakeBuiltinModel(fixture.config, fixture.dataset, 1, device);
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    if (!model.ok()) return nullptr;
    (*model)->Initialize(7);
    return std::move(model).value();
  }
  static ModelFixture Data() {
    ModelFixture fixture;
    fixture.dataset.samples = 100;
    fixture.dataset.feature_shape = GetParam().sample_shape;
    fixture.dataset.classes = 10;
    return fixture;
  }
  // Token ids from 0 to 9 where a sample is a text.
  static Batch MakeBatch(int64_t samples) {
    Batch batch = Data().MakeBatch(samples);
    if (batch.feature_shape.size() > 1) return batch;
    for (float& feature : batch.features) feature = std::floor((feature + 0.5f) * 10);
    return batch;
  }
};

std::vector<float> Buffers(const TrainableModel& model) {
  std::vector<float> flat(static_cast<size_t>(model.buffer_size()));
  model.GetBuffers(flat);
  return flat;
}

// Each of many layers adds its own rounding, and where a sum is close to 0 it decides what a ReLU
// lets through: bounds are wider than those of small models.
TEST_P(GpuEveryNetwork, IsCloseToTheProcessorAndTrainsToTheSameBitsTwice) {
  const auto gpu = Make(ComputeDevice::kCuda);
  const auto twin = Make(ComputeDevice::kCuda);
  const auto cpu = Make(ComputeDevice::kCpu);
  ASSERT_TRUE(gpu != nullptr && twin != nullptr && cpu != nullptr);
  EXPECT_EQ(Parameters(*gpu), Parameters(*cpu));
  const Batch batch = MakeBatch(32);
  const Step step = TakeStep(*gpu, batch);
  const Step expected = TakeStep(*cpu, batch);
  EXPECT_NEAR(step.loss_sum, expected.loss_sum, 1e-3 * expected.loss_sum);
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.gradient.size(); ++i) {
    difference += std::pow(double{step.gradient[i]} - expected.gradient[i], 2);
    norm += std::pow(double{expected.gradient[i]}, 2);
  }
  EXPECT_LE(std::sqrt(difference / norm), 2e-2);
  const std::vector<float> buffers = Buffers(*gpu);
  const std::vector<float> expected_buffers = Buffers(*cpu);
  for (size_t i = 0; i < buffers.size(); ++i) {
    ASSERT_NEAR(buffers[i], expected_buffers[i], 1e-3 * (1 + std::abs(expected_buffers[i]))) << i;
  }
  (void)TakeStep(*twin, batch);
  std::vector<float> weights;
  std::vector<float> again;
  EXPECT_EQ(Train(*gpu, batch, 5, &weights), Train(*twin, batch, 5, &again));
  EXPECT_EQ(weights, again);
  EXPECT_EQ(Buffers(*gpu), Buffers(*twin));
  RecordProperty("gradientDifference", std::to_string(std::sqrt(difference / norm)));
  RecordBits(weights);
}

const NetworkCase kNetworks[] = {
    {"resnet18", {}, {3, 32, 32}},
    {"resnet18", {{"groupNorm", {1}}}, {3, 32, 32}},
    {"mobilenet", {{"dropout", {0}}}, {3, 32, 32}},
    {"textcnn", {{"vocabulary", {10}}, {"dropout", {0}}}, {16}},
};
INSTANTIATE_TEST_SUITE_P(All, GpuEveryNetwork, testing::ValuesIn(kNetworks),
                         [](const auto& instance) {
                           return std::string(instance.param.name) +
                                  (instance.param.parameters.contains("groupNorm") ? "_group" : "");
                         });

// TF32 would round the numbers to 11 bits, an error of up to 5e-4.
TEST_F(Gpu, ProductsAreOfFloat32) {
  const auto options = at::TensorOptions(at::kFloat).device(at::kCUDA);
  at::manual_seed(3);
  const at::Tensor matrix = at::rand({512, 512}, options).add_(1);
  EXPECT_TRUE(at::allclose(at::mm(matrix, at::eye(512, options)), matrix, 1e-6, 0));
  const at::Tensor images = at::rand({128, 32, 24, 24}, options).add_(1);
  const at::Tensor kernels = at::zeros({32, 32, 5, 5}, options);
  for (int64_t channel = 0; channel < 32; ++channel) kernels[channel][channel][2][2].fill_(1);
  EXPECT_TRUE(at::allclose(at::conv2d(images, kernels, {}, 1, 2), images, 1e-5, 0));
}

TEST_F(Gpu, DropoutDrawsFromTheStepSeedAlone) {
  ModelFixture fixture = MakeFixture("mlp");
  fixture.config.model.parameters["dropout"] = {0.5};
  const Batch batch = fixture.MakeBatch(8);
  for (const bool script : {false, true}) {
    const auto model =
        script ? MakeScript(0.5, ComputeDevice::kCuda) : fixture.Make(ComputeDevice::kCuda);
    ASSERT_NE(model, nullptr);
    const Step first = TakeStep(*model, batch, 1);
    EXPECT_NE(TakeStep(*model, batch, 2).gradient, first.gradient);
    EXPECT_EQ(TakeStep(*model, batch, 1).gradient, first.gradient);
    EXPECT_EQ(LossSum(*model, batch), LossSum(*model, batch));
  }
}

TEST_F(Gpu, BatchOfZeroSamplesGivesZeroGradient) {
  for (const bool script : {false, true}) {
    const ModelFixture fixture = MakeFixture("cnn");
    const auto model =
        script ? MakeScript(0, ComputeDevice::kCuda) : fixture.Make(ComputeDevice::kCuda);
    ASSERT_NE(model, nullptr);
    const Step step = TakeStep(*model, fixture.MakeBatch(0));
    EXPECT_EQ(step.gradient, std::vector<float>(step.gradient.size()));
  }
}

TEST_F(Gpu, ExportedModelsNeedNoGpu) {
  const ModelFixture fixture = MakeFixture("cnn");
  const Batch batch = fixture.MakeBatch(5);
  for (const bool script : {false, true}) {
    const auto model =
        script ? MakeScript(0, ComputeDevice::kCuda) : fixture.Make(ComputeDevice::kCuda);
    ASSERT_NE(model, nullptr);
    const Step before = TakeStep(*model, batch);
    const auto archive = model->ExportTorchScript();
    ASSERT_TRUE(archive.ok()) << archive.status().ToString();
    std::istringstream stream(*archive);
    torch::jit::Module module = torch::jit::load(stream);  // where its tensors were saved
    for (const at::Tensor& parameter : module.parameters()) {
      EXPECT_TRUE(parameter.device().is_cpu());
      // Its own numbers alone, not the buffer that it was a part of.
      EXPECT_EQ(parameter.storage().nbytes(),
                sizeof(float) * static_cast<size_t>(parameter.numel()));
    }
    at::Tensor x = at::empty({5, 1, 12, 12});
    std::copy(batch.features.begin(), batch.features.end(), x.data_ptr<float>());
    const at::Tensor labels = at::tensor(batch.labels);
    const at::Tensor loss =
        at::cross_entropy_loss(module.forward({x}).toTensor(), labels, {}, at::Reduction::Sum);
    const double expected = LossSum(*model, batch);
    EXPECT_NEAR(loss.item<double>(), expected, kTolerance * expected);
    EXPECT_EQ(TakeStep(*model, batch).gradient, before.gradient);  // it is still on the GPU
  }
}

TEST_F(Gpu, FingerprintNamesTheGpuAndItsLibraries) {
  const NumericsFingerprint fingerprint = FingerprintOn(ComputeDevice::kCuda);
  EXPECT_THAT(fingerprint.isa, testing::MatchesRegex(IsaLevel() + "[+]sm_[0-9]+"));
  EXPECT_THAT(fingerprint.libtorch,
              testing::MatchesRegex(TorchVersion() + ", CUDA [0-9.]+, cuDNN [0-9]+, [A-Z].*"));
  EXPECT_NE(fingerprint, FingerprintOn(ComputeDevice::kCpu));
  testing::Test::RecordProperty("fingerprint", fingerprint.isa + ", " + fingerprint.libtorch);
}

}  // namespace
}  // namespace lambdadnn
