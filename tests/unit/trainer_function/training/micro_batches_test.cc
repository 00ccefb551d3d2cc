// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/micro_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "common/base/random.h"
#include "tests/support/arithmetic_model.h"

namespace lambdadnn {
namespace {

// Notes what it is asked for; its gradient is the sum of features in element 0 and of labels in
// element 1.
class NotingModel final : public TrainableModel {
 public:
  const ParameterManifest& manifest() const override { return manifest_; }
  void Initialize(uint64_t) override {}
  void SetParameters(const SplitVector&) override {}
  void GetParameters(std::span<float>) const override {}
  Result<StepResult> ForwardBackward(const Batch& batch, uint64_t step_seed,
                                     std::span<float> gradient) override {
    if (fails_at_ >= 0 && std::ssize(sizes) == fails_at_) return InternalError("out of order");
    sizes.push_back(batch.samples);
    seeds.insert(step_seed);
    gradient[0] = gradient[1] = 0;
    for (const float feature : batch.features) gradient[0] += feature;
    for (const int64_t label : batch.labels) gradient[1] += static_cast<float>(label);
    EXPECT_EQ(std::ssize(batch.features), 2 * batch.samples);
    EXPECT_EQ(batch.partner_labels, batch.labels);
    EXPECT_EQ(std::ssize(batch.shares), batch.samples);
    return StepResult{10, batch.samples, 0.5};
  }
  Result<EvaluationResult> Evaluate(const Batch&) override { return EvaluationResult{}; }
  Result<std::string> ExportTorchScript() override { return UnimplementedError("none"); }
  void FailAt(int64_t step) { fails_at_ = step; }

  std::vector<int64_t> sizes;
  std::set<uint64_t> seeds;

 private:
  int64_t fails_at_ = -1;
  ParameterManifest manifest_ = {{"weight", {2}, 0, 2}};
};

Batch SevenSamples() {
  Batch batch;
  batch.samples = 7;
  batch.feature_shape = {2};
  for (int i = 0; i < 14; ++i) batch.features.push_back(static_cast<float>(i));
  batch.labels = {1, 2, 3, 4, 5, 6, 7};
  batch.partner_labels = batch.labels;
  batch.shares.resize(7, 0.5f);
  return batch;
}

TEST(MicroBatches, EverySampleIsSeenOnceInOrder) {
  using Sizes = std::vector<int64_t>;
  for (const auto& [piece, sizes] : std::vector<std::pair<int, Sizes>>{
           {0, {7}}, {7, {7}}, {100, {7}}, {3, {3, 3, 1}}, {1, Sizes(7, 1)}}) {
    NotingModel model;
    std::vector<float> gradient(2, -1);
    const auto step = StepInPieces(model, SevenSamples(), piece, 42, gradient);
    ASSERT_TRUE(step.ok());
    EXPECT_EQ(model.sizes, sizes) << piece;
    EXPECT_THAT(gradient, testing::ElementsAre(91, 28)) << piece;
    EXPECT_EQ(step->samples, 7);
    EXPECT_EQ(step->loss_sum, 10 * static_cast<double>(sizes.size()));
    EXPECT_EQ(step->weight_sum, 0.5 * static_cast<double>(sizes.size()));
    EXPECT_EQ(model.seeds.size(), sizes.size()) << "draws of their own";
    EXPECT_TRUE(model.seeds.contains(42)) << "the first as without pieces";
  }
}

TEST(MicroBatches, AnErrorOfAnyPieceIsTheStepsOwn) {
  NotingModel model;
  model.FailAt(2);
  std::vector<float> gradient(2);
  EXPECT_EQ(StepInPieces(model, SevenSamples(), 3, 42, gradient).status().message(),
            "out of order");
}

// As in exact arithmetic; the model's draws are of less weight than the tolerance.
TEST(MicroBatches, TheGradientIsThatOfTheWholeBatch) {
  InMemoryDataset dataset(64, 0);
  const Range all{0, 64};
  ASSERT_TRUE(dataset.Load(std::span(&all, 1)).ok());
  std::vector<int64_t> indices(64);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i);
  const Batch batch = dataset.Read(indices, 0).value();
  ArithmeticModel model(100);
  model.Initialize(1);
  std::vector<float> whole(100);
  std::vector<float> pieces(100);
  const StepResult at_once = StepInPieces(model, batch, 0, 7, whole).value();
  const StepResult step = StepInPieces(model, batch, 10, 7, pieces).value();
  EXPECT_NEAR(step.loss_sum, at_once.loss_sum, 1e-9);
  EXPECT_EQ(step.samples, 64);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(pieces[i], whole[i], 0.15) << i;
}

}  // namespace
}  // namespace lambdadnn
