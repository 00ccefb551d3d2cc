// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/parameter_server/root_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <memory>

#include "tests/support/memory_transport.h"
#include "tests/support/role_bench.h"

namespace lambdadnn {
namespace {

using testing::Each;
using testing::HasSubstr;

HarnessJob Job() {
  HarnessJob job;
  job.layers = {1, 2};
  job.parameters = 2 * kDefaultBlockElements;
  job.optimizer.learning_rate = 0.5;
  return job;
}

// The root of all shards, or of one of two spread groups.
class RootUpdateTest : public testing::Test {
 protected:
  void Make(const HarnessJob& job, Range shards) {
    bench_ = std::make_unique<RoleBench>(job, Role{RoleKind::kServer, 0, {1, 0, 0}});
    shards_ = shards;
    const Range elements = {bench_->Shard(static_cast<int>(shards.begin)).begin,
                            bench_->Shard(static_cast<int>(shards.end) - 1).end};
    state_ = ParameterState::Zero(elements, 0);
    state_.weights.assign(state_.weights.size(), 1);
    transport_ = std::make_unique<MemoryTransport>(bench_->runtime);
    pushes_ = std::make_unique<TransferPool>(bench_->runtime, bench_->interrupt, "push");
    update_ = std::make_unique<RootUpdate>(bench_->context, *transport_, agreement_, *pushes_,
                                           state_, shards, 0);
  }
  // The sum of 4 samples' gradients of `shard` has come, every element `value`.
  Status Merged(int64_t iteration, int shard, float value, double loss_sum = 2) {
    const Range range = bench_->Shard(shard);
    sums_.emplace_back(static_cast<size_t>(range.size()), value);
    return update_->OnMerged(iteration, {shard, range, sums_.back(), 4, loss_sum});
  }
  std::vector<float> Weights(int64_t version, int shard) {
    EXPECT_TRUE(pushes_->WaitIdle().ok());
    const auto pulled = transport_->Pull({ObjectKind::kWeights, version, 1, shard, 0}, {});
    const auto values = pulled->values<float>();
    return {values.begin(), values.end()};
  }

  StopAgreement agreement_{100, 0};
  std::unique_ptr<RoleBench> bench_;
  Range shards_;
  ParameterState state_;
  std::deque<std::vector<float>> sums_;
  std::unique_ptr<MemoryTransport> transport_;
  std::unique_ptr<TransferPool> pushes_;
  std::unique_ptr<RootUpdate> update_;
};

TEST_F(RootUpdateTest, AShardGoesOutAsSoonAsItsSumIsThere) {
  Make(Job(), {0, 2});
  ASSERT_TRUE(Merged(3, 1, 8).ok());
  // 1 - 0.5 * 8 / 4
  EXPECT_THAT(Weights(4, 1), Each(0.0F));
  EXPECT_EQ(transport_->size(), 1u) << "shard 0 has not come";
  ASSERT_TRUE(Merged(3, 0, 4).ok());
  EXPECT_THAT(Weights(4, 0), Each(0.5F));
  ASSERT_TRUE(update_->FinishIteration(3).ok());
  EXPECT_EQ(transport_->size(), 2u);
}

TEST_F(RootUpdateTest, WeightsCarryTheAgreedEnd) {
  Make(Job(), {0, 2});
  agreement_.Request();
  agreement_.Answer(4);
  ASSERT_TRUE(Merged(3, 0, 8).ok());
  ASSERT_TRUE(pushes_->WaitIdle().ok());
  EXPECT_EQ(transport_->Pull({ObjectKind::kWeights, 4, 1, 0, 0}, {})->header.stop_at, 5);
}

TEST_F(RootUpdateTest, ValuesAreClippedAfterTheMean) {
  HarnessJob job = Job();
  job.optimizer.clip_value = 0.5;
  Make(job, {0, 2});
  ASSERT_TRUE(Merged(0, 0, -400).ok());
  EXPECT_THAT(Weights(1, 0), Each(1.25F));
}

TEST_F(RootUpdateTest, WhatIsNoNumberIsRefusedWithItsIteration) {
  struct Row {
    float gradient;
    double loss;
    const char* named;
  };
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Row& row : {Row{kNaN, 1, "the gradient of iteration 7"},
                         Row{1, kInfinity, "the loss of iteration 7"}}) {
    Make(Job(), {0, 2});
    const Status status = Merged(7, 0, row.gradient, row.loss);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(row.named));
    ASSERT_TRUE(pushes_->WaitIdle().ok());
    EXPECT_EQ(transport_->size(), 0u) << "nobody trains on with it";
  }
}

TEST_F(RootUpdateTest, AGlobalNormHoldsBackAllShardsUntilItIsKnown) {
  HarnessJob job = Job();
  job.optimizer.clip_global_norm = 1;
  Make(job, {0, 2});
  ASSERT_TRUE(Merged(0, 0, 4).ok());
  ASSERT_TRUE(Merged(0, 1, 4).ok());
  ASSERT_TRUE(pushes_->WaitIdle().ok());
  EXPECT_EQ(transport_->size(), 0u);
  ASSERT_TRUE(update_->FinishIteration(0).ok());
  // The mean gradient is 1 everywhere: its norm is the root of the number of parameters.
  const double norm = std::sqrt(static_cast<double>(job.parameters));
  for (const int shard : {0, 1}) {
    for (const float weight : Weights(1, shard)) ASSERT_NEAR(weight, 1 - 0.5 / norm, 1e-6);
  }
}

// The last shard: a block of parameters, then two elements of buffers.
HarnessJob JobWithBuffers() {
  HarnessJob job = Job();
  job.buffers = 2;
  job.optimizer.weight_decay = 0.1;
  return job;
}

TEST_F(RootUpdateTest, BuffersComeAsAMeanAndAreTakenAsTheyAre) {
  HarnessJob job = JobWithBuffers();
  job.optimizer.clip_value = 0.25;
  job.optimizer.momentum = 0.9;
  Make(job, {0, 2});
  state_.vectors.assign(1, std::vector<float>(state_.weights.size()));
  ASSERT_TRUE(Merged(0, 1, 3.14159F).ok());
  const std::vector<float> weights = Weights(1, 1);
  const auto edge = weights.end() - 2;
  EXPECT_THAT(std::vector<float>(weights.begin(), edge), Each(1 - 0.5F * (0.25F + 0.1F)));
  EXPECT_THAT(std::vector<float>(edge, weights.end()), Each(3.14159F));
  EXPECT_EQ(state_.vectors[0].back(), 0) << "the optimizer keeps nothing of them";
}

TEST_F(RootUpdateTest, TheNormLeavesBuffersOut) {
  HarnessJob job = JobWithBuffers();
  job.optimizer.weight_decay = 0;
  job.optimizer.clip_global_norm = 1;
  Make(job, {0, 2});
  ASSERT_TRUE(Merged(0, 0, 4).ok());
  std::vector<float>& sum = sums_.emplace_back(static_cast<size_t>(bench_->Shard(1).size()), 4);
  sum.back() = 1e6F;
  ASSERT_TRUE(update_->OnMerged(0, {1, bench_->Shard(1), sum, 4, 2}).ok());
  ASSERT_TRUE(update_->FinishIteration(0).ok());
  const double norm = std::sqrt(static_cast<double>(job.parameters));
  const std::vector<float> weights = Weights(1, 1);
  EXPECT_NEAR(weights.front(), 1 - 0.5 / norm, 1e-6);
  EXPECT_EQ(weights.back(), 1e6F) << "nor are they scaled";
}

TEST_F(RootUpdateTest, BuffersThatAreNoNumbersAreRefusedByTheirName) {
  Make(JobWithBuffers(), {0, 2});
  std::vector<float>& sum = sums_.emplace_back(static_cast<size_t>(bench_->Shard(1).size()), 4);
  sum.back() = std::numeric_limits<float>::infinity();
  const Status status = update_->OnMerged(7, {1, bench_->Shard(1), sum, 4, 2});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("the buffers (batch norm's statistics) of iteration 7"));
}

TEST_F(RootUpdateTest, TheNormIsThatOfAllSpreadGroups) {
  HarnessJob job = Job();
  job.spread = 2;
  job.optimizer.clip_global_norm = 1;
  Make(job, {0, 1});
  // The other group's shard has a mean gradient of 3.
  const std::vector<double> others = {9.0 * kDefaultBlockElements};
  TransferMetadata metadata;
  metadata.elements = bench_->Shard(1);
  ASSERT_TRUE(transport_
                  ->Push({ObjectKind::kNorms, 0, 1, 1, 0}, metadata,
                         std::as_bytes(std::span<const double>(others)))
                  .ok());
  ASSERT_TRUE(Merged(0, 0, 4).ok());
  ASSERT_TRUE(update_->FinishIteration(0).ok());
  const double norm = std::sqrt(10.0 * kDefaultBlockElements);
  for (const float weight : Weights(1, 0)) ASSERT_NEAR(weight, 1 - 0.5 / norm, 1e-6);
  const auto own = transport_->Pull({ObjectKind::kNorms, 0, 1, 0, 0}, {});
  EXPECT_THAT(own->values<double>(), testing::ElementsAre(1.0 * kDefaultBlockElements));
}

TEST_F(RootUpdateTest, GarbageIsTheWeightsThatNobodyReadsAgainAndTheNorms) {
  for (const bool clipped : {false, true}) {
    HarnessJob job = Job();
    if (clipped) job.optimizer.clip_global_norm = 1;
    Make(job, {0, 2});
    // A worker that starts again at version 4, while not all of its gradient is merged, reads it.
    const auto names = update_->Garbage(4, 0, 1);
    ASSERT_EQ(names.size(), clipped ? 2u : 1u);
    EXPECT_EQ(names.back().kind, ObjectKind::kWeights);
    EXPECT_EQ(names.back().iteration, 3);
    EXPECT_EQ(names.back().shard, 1);
    if (clipped) {
      EXPECT_EQ(names.front().kind, ObjectKind::kNorms);
      EXPECT_EQ(names.front().iteration, 3);
    }
    EXPECT_TRUE(update_->Garbage(4, 4, 1).empty()) << "these weights come from a checkpoint";
    EXPECT_EQ(update_->Garbage(5, 4, 1).size(), clipped ? 1u : 0u);
  }
}

}  // namespace
}  // namespace lambdadnn
