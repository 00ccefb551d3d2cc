// SPDX-License-Identifier: Apache-2.0
// Against reference vectors made with PyTorch: tests/data/optimizer/generate.py.
#include "trainer_function/parameter_server/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "common/base/files.h"
#include "common/json/json_reader.h"
#include "common/plan/plan.h"
#include "tests/support/paths.h"
#include "trainer_function/parameter_server/gradient_math.h"
#include "trainer_function/parameter_server/learning_rate.h"

namespace lambdadnn {
namespace {

constexpr int kSteps = 100;
constexpr double kTolerance = 1e-6;

OptimizerConfig ReadConfig(const Json& json) {
  OptimizerConfig config;
  config.name = FindEnum<OptimizerKind>(json.at("name").get<std::string>()).value();
  config.learning_rate = json.at("learningRate");
  config.momentum = json.value("momentum", 0.0);
  config.dampening = json.value("dampening", 0.0);
  config.nesterov = json.value("nesterov", false);
  config.weight_decay = json.value("weightDecay", 0.0);
  config.beta1 = json.value("beta1", 0.9);
  config.beta2 = json.value("beta2", 0.999);
  config.epsilon = json.value("epsilon", 1e-8);
  config.amsgrad = json.value("amsgrad", false);
  if (json.contains("schedule")) {
    const Json& schedule = json.at("schedule");
    config.schedule.name = FindEnum<ScheduleKind>(schedule.value("name", "")).value();
    config.schedule.warmup_iterations = schedule.value("warmupIterations", 0);
    config.schedule.step_iterations = schedule.value("stepIterations", 0);
    config.schedule.gamma = schedule.value("gamma", 0.1);
    config.schedule.min_learning_rate = schedule.value("minLearningRate", 0.0);
    config.schedule.power = schedule.value("power", 1.0);
  }
  if (json.contains("clipValue")) config.clip_value = json.at("clipValue").get<double>();
  if (json.contains("clipGlobalNorm"))
    config.clip_global_norm = json.at("clipGlobalNorm").get<double>();
  return config;
}

std::vector<float> Gradient(int step, size_t size) {
  std::vector<float> gradient;
  for (int i = 0; i < static_cast<int>(size); ++i) {
    gradient.push_back(
        static_cast<float>(((step * 37 + i * 101) % 257 - 128) / 64.0 + (i - 3) * 0.25));
  }
  return gradient;
}

std::vector<std::string> Cases() {
  std::vector<std::string> cases;
  for (const auto& entry :
       std::filesystem::directory_iterator(SourcePath("tests/data/optimizer"))) {
    if (entry.path().extension() == ".json") cases.push_back(entry.path().stem().string());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

class OptimizerReference : public testing::TestWithParam<std::string> {};

TEST_P(OptimizerReference, HundredStepsAreWithinAMillionthOfPyTorch) {
  const Json reference =
      ParseJson(ReadFile(SourcePath("tests/data/optimizer/" + GetParam() + ".json")).value())
          .value();
  const OptimizerConfig config = ReadConfig(reference.at("config"));
  ASSERT_TRUE(ValidateOptimizer(config).ok());
  auto weights = reference.at("start").get<std::vector<float>>();
  std::vector<std::vector<float>> vectors(static_cast<size_t>(OptimizerStateVectors(config)),
                                          std::vector<float>(weights.size()));
  const std::vector<std::span<float>> state(vectors.begin(), vectors.end());
  size_t next = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> gradient = Gradient(step, weights.size());
    if (config.clip_value) ClipByValue(gradient, *config.clip_value);
    if (config.clip_global_norm)
      Scale(gradient, NormClipFactor(BlockSquares(gradient, kDefaultBlockElements),
                                     *config.clip_global_norm));
    const double rate = LearningRate(config, step, kSteps);
    ApplyOptimizer(config, {rate, step}, weights, gradient, state);
    const Json& expected = reference.at("steps").at(next);
    if (expected.at("step") != step) continue;
    ++next;
    EXPECT_NEAR(rate, expected.at("learningRate").get<double>(), 1e-12) << "step " << step;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double value = expected.at("weights").at(i);
      EXPECT_NEAR(weights[i], value, kTolerance * std::max(1.0, std::abs(value)))
          << "step " << step << ", weight " << i;
    }
  }
  EXPECT_EQ(next, reference.at("steps").size());
}

INSTANTIATE_TEST_SUITE_P(PyTorch, OptimizerReference, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param; });

TEST(Optimizer, TheReferencesAreThere) { EXPECT_GE(Cases().size(), 17u); }

// Wherever it is cut: what vectors take, of whatever width, is what single numbers take.
TEST(Optimizer, ACutChangesNoBit) {
  OptimizerConfig sgd;
  sgd.momentum = 0.9;
  sgd.weight_decay = 0.1;
  sgd.nesterov = true;
  OptimizerConfig adam;
  adam.name = OptimizerKind::kAdamW;
  adam.weight_decay = 0.1;
  adam.amsgrad = true;
  for (const OptimizerConfig& config : {sgd, adam}) {
    constexpr size_t kSize = 1000;
    const auto vectors = static_cast<size_t>(OptimizerStateVectors(config));
    std::vector<float> whole(kSize, 0.5F);
    std::vector<float> cut = whole;
    std::vector<std::vector<float>> whole_state(vectors, std::vector<float>(kSize));
    std::vector<std::vector<float>> cut_state = whole_state;
    for (int step = 0; step < 10; ++step) {
      std::vector<float> gradient = Gradient(step, kSize);
      std::vector<float> pieces = gradient;
      const std::vector<std::span<float>> state(whole_state.begin(), whole_state.end());
      ApplyOptimizer(config, {0.01, step}, whole, gradient, state);
      size_t size = 333;
      for (size_t begin = 0; begin < kSize; begin += size) {
        if (begin > 0) size = begin < 700 ? 1 : 300;
        std::vector<std::span<float>> part;
        for (auto& vector : cut_state) part.push_back(std::span(vector).subspan(begin, size));
        ApplyOptimizer(config, {0.01, step}, std::span(cut).subspan(begin, size),
                       std::span(pieces).subspan(begin, size), part);
      }
    }
    EXPECT_EQ(cut, whole);
  }
}

TEST(Optimizer, EachBadOptionIsNamed) {
  const auto message = [](const std::function<void(OptimizerConfig&)>& change) {
    OptimizerConfig config;
    change(config);
    return ValidateOptimizer(config).message();
  };
  using testing::HasSubstr;
  EXPECT_EQ(message([](OptimizerConfig&) {}), "");
  EXPECT_THAT(message([](OptimizerConfig& c) { c.learning_rate = -1; }), HasSubstr("learningRate"));
  EXPECT_THAT(message([](OptimizerConfig& c) { c.learning_rate = std::nan(""); }),
              HasSubstr("learningRate"));
  EXPECT_THAT(message([](OptimizerConfig& c) { c.momentum = -1; }), HasSubstr("momentum"));
  EXPECT_THAT(message([](OptimizerConfig& c) { c.nesterov = true; }), HasSubstr("nesterov"));
  EXPECT_THAT(message([](OptimizerConfig& c) { c.beta2 = 1; }), HasSubstr("beta2"));
  EXPECT_THAT(message([](OptimizerConfig& c) { c.clip_value = 0; }), HasSubstr("clipValue"));
  EXPECT_THAT(message([](OptimizerConfig& c) { c.schedule.name = ScheduleKind::kStep; }),
              HasSubstr("stepIterations"));
  EXPECT_THAT(message([](OptimizerConfig& c) { c.schedule.power = 0; }), HasSubstr("power"));
}

}  // namespace
}  // namespace lambdadnn
