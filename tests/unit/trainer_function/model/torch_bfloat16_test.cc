// SPDX-License-Identifier: Apache-2.0
// Models in bfloat16 beside the same in float32; skipped where the processor has no such products.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/model_fixture.h"
#include "trainer_function/model/bfloat16.h"
#include "trainer_function/model/torch_device.h"

namespace lambdadnn {
namespace {

std::vector<float> GradientOf(TrainableModel& model, const Batch& batch) {
  std::vector<float> gradient(static_cast<size_t>(model.size()));
  const auto step = model.ForwardBackward(batch, 1, gradient);
  EXPECT_TRUE(step.ok()) << step.status().ToString();
  return gradient;
}

double Norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

class InBfloat16 : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (Bfloat16Instructions().empty()) GTEST_SKIP() << "no products of bfloat16 here";
    lower_.config.precision = Precision::kBfloat16;
  }
  ModelFixture full_ = MakeFixture(GetParam());
  ModelFixture lower_ = full_;
};

TEST_P(InBfloat16, GradientsAreThoseOfFloat32ButForTheirRounding) {
  const Batch batch = full_.MakeBatch(16);
  const auto full = full_.Make();
  const auto lower = lower_.Make();
  const std::vector<float> expected = GradientOf(*full, batch);
  std::vector<float> difference = GradientOf(*lower, batch);
  for (size_t i = 0; i < difference.size(); ++i) difference[i] -= expected[i];
  EXPECT_GT(Norm(difference), 1e-5 * Norm(expected)) << "it computed in float32";
  EXPECT_LT(Norm(difference), 0.03 * Norm(expected));
}

TEST_P(InBfloat16, StepsHaveTheSameBitsAgainAndFollowTheWeights) {
  const Batch batch = lower_.MakeBatch(6);
  const auto model = lower_.Make();
  const auto twin = lower_.Make();
  const std::vector<float> first = GradientOf(*model, batch);
  std::vector<float> weights(first.size());
  model->GetParameters(weights);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.1f * first[i];
  // Neither model may go on with copies of the weights before.
  model->SetParameters(weights);
  twin->SetParameters(weights);
  const std::vector<float> second = GradientOf(*model, batch);
  EXPECT_NE(second, first);
  EXPECT_EQ(GradientOf(*twin, batch), second);
  EXPECT_EQ(model->Evaluate(batch)->loss_sum, twin->Evaluate(batch)->loss_sum);
  std::vector<float> kept(first.size());
  model->GetParameters(kept);
  EXPECT_EQ(kept, weights) << "weights of float32 were rounded";
}

// What one model computes in is not what the process does.
TEST_P(InBfloat16, AModelOfFloat32BesideItStaysOne) {
  const Batch batch = full_.MakeBatch(6);
  const auto full = full_.Make();
  const std::vector<float> alone = GradientOf(*full, batch);
  GradientOf(*lower_.Make(), batch);
  EXPECT_EQ(GradientOf(*full, batch), alone);
}

INSTANTIATE_TEST_SUITE_P(All, InBfloat16, testing::Values("mlp", "cnn", "cnn1d", "logistic"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(Bfloat16Fingerprint, NamesTheInstructionsOfItsProducts) {
  const NumericsFingerprint full = FingerprintOn(ComputeDevice::kCpu);
  const NumericsFingerprint lower = FingerprintOn(ComputeDevice::kCpu, Precision::kBfloat16);
  EXPECT_EQ(lower.isa, full.isa + "+" + std::string(Bfloat16Instructions()));
  EXPECT_EQ(lower.libtorch, full.libtorch);
}

}  // namespace
}  // namespace lambdadnn
