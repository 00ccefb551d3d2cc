// SPDX-License-Identifier: Apache-2.0
// Nodes and workers of one tree over a transport in memory.
#include <gtest/gtest.h>

#include <atomic>

#include "common/plan/arrivals.h"
#include "tests/support/memory_transport.h"
#include "tests/support/system_runtime.h"
#include "trainer_function/collective/shard_exchange.h"
#include "trainer_function/collective/tree_node.h"

namespace lambdadnn {
namespace {

class TreeReduce : public testing::Test {
 protected:
  void PushGradient(int64_t iteration, int child, float value) {
    for (int shard = 0; shard < plan_.shards; ++shard) {
      const Range range = ShardRange(kBlocks, plan_.shards, shard);
      const std::vector<float> values(static_cast<size_t>(range.size()), value);
      TransferMetadata metadata = {range, 2, 0.5, 0, false};
      ASSERT_TRUE(transport_
                      .Push({ObjectKind::kGradient, iteration, 0, shard, child}, metadata,
                            AsBytes(std::span<const float>(values)))
                      .ok());
    }
  }

  static constexpr int64_t kParameters = 3 * kDefaultBlockElements;
  static constexpr ParameterBlocks kBlocks = {kParameters};
  SystemRuntime runtime_;
  Interrupt interrupt_{runtime_, runtime_.clock.Now() + std::chrono::seconds(60)};
  AggregationPlan plan_{.shards = 3, .layers = {1, 3}};
  MemoryTransport transport_{runtime_};
  StopAgreement agreement_{100, 0};
  PhaseMeter phases_{runtime_.clock, {}, runtime_.clock.Now()};
};

TEST_F(TreeReduce, EachShardIsHandedOverInOrderWithItsSums) {
  TreeNode node(runtime_, interrupt_, transport_, agreement_, phases_, plan_, kBlocks, {1, 0, 0});
  for (const int child : {2, 0, 1}) PushGradient(4, child, static_cast<float>(child + 1));
  std::vector<int> shards;
  ASSERT_TRUE(node.Merge(4,
                         [&](MergedShard merged) {
                           merged.Complete();
                           shards.push_back(merged.shard);
                           EXPECT_EQ(merged.samples, 6);
                           EXPECT_EQ(merged.loss_sum, 1.5);
                           EXPECT_EQ(merged.gradient.front(), 6.0F);
                           EXPECT_EQ(merged.gradient.back(), 6.0F);
                           return OkStatus();
                         })
                  .ok());
  EXPECT_EQ(shards, (std::vector<int>{0, 1, 2}));
}

// Whoever sums up a part gets what the whole has there.
TEST_F(TreeReduce, ASumOfPartsIsThatOfAll) {
  TreeNode node(runtime_, interrupt_, transport_, agreement_, phases_, plan_, kBlocks, {1, 0, 0});
  for (const int child : {0, 1, 2}) PushGradient(4, child, 0.1F * static_cast<float>(child + 1));
  ASSERT_TRUE(node.Merge(4,
                         [&](MergedShard merged) {
                           std::vector<float> part(3);
                           merged.SumTo(5, part);
                           merged.Complete();
                           EXPECT_EQ(part[2], (0.1F + 0.2F) + 0.3F);
                           EXPECT_EQ(merged.gradient[7], part[2]);
                           merged.SumTo(5, part);
                           EXPECT_EQ(merged.gradient[7], part[2]);
                           return OkStatus();
                         })
                  .ok());
}

TEST_F(TreeReduce, DuplicatePushIsCountedOnce) {
  TreeNode node(runtime_, interrupt_, transport_, agreement_, phases_, plan_, kBlocks, {1, 0, 0});
  for (const int child : {0, 1, 2, 1, 1}) PushGradient(4, child, 1);
  ASSERT_TRUE(node.Merge(4,
                         [&](MergedShard merged) {
                           merged.Complete();
                           EXPECT_EQ(merged.samples, 6);
                           EXPECT_EQ(merged.gradient[7], 3.0F);
                           return OkStatus();
                         })
                  .ok());
}

TEST_F(TreeReduce, GradientsOfOtherIterationsAreNotMixedIn) {
  TreeNode node(runtime_, interrupt_, transport_, agreement_, phases_, plan_, kBlocks, {1, 0, 0});
  for (const int child : {0, 1, 2}) {
    PushGradient(3, child, 100);
    PushGradient(4, child, 1);
    PushGradient(5, child, 100);
  }
  ASSERT_TRUE(node.Merge(4,
                         [&](MergedShard merged) {
                           merged.Complete();
                           EXPECT_EQ(merged.gradient[7], 3.0F);
                           return OkStatus();
                         })
                  .ok());
}

// While the last child's later shards are still missing, earlier shards go on.
TEST_F(TreeReduce, AShardDoesNotWaitForOthers) {
  TreeNode node(runtime_, interrupt_, transport_, agreement_, phases_, plan_, kBlocks, {1, 0, 0});
  PushGradient(4, 0, 1);
  PushGradient(4, 1, 1);
  const auto push = [&](int shard) {
    const Range range = ShardRange(kBlocks, plan_.shards, shard);
    const std::vector<float> values(static_cast<size_t>(range.size()), 1.0F);
    EXPECT_TRUE(transport_
                    .Push({ObjectKind::kGradient, 4, 0, shard, 2}, {range, 2, 0.5, 0, false},
                          AsBytes(std::span<const float>(values)))
                    .ok());
  };
  push(0);
  // Each shard's hand-over is what lets the next one come.
  ASSERT_TRUE(node.Merge(4,
                         [&](MergedShard merged) {
                           merged.Complete();
                           if (merged.shard < 2) push(merged.shard + 1);
                           return OkStatus();
                         })
                  .ok());
}

// Counts what is asked for.
class CountedPulls final : public Transport {
 public:
  explicit CountedPulls(Transport& inner) : inner_(inner) {}
  Status Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
              const SharedView& payload) override {
    return inner_.Push(name, metadata, payload);
  }
  Result<ReceivedObject> Pull(const ExchangeObjectName& name, Range elements) override {
    ++asked;
    Result<ReceivedObject> received = inner_.Pull(name, elements);
    ++come;
    return received;
  }
  Status Discard(std::span<const ExchangeObjectName> names) override {
    return inner_.Discard(names);
  }
  std::atomic<int> asked{0};
  std::atomic<int> come{0};

 private:
  Transport& inner_;
};

TEST(Arrivals, AreBoundedByBytesAndByNumber) {
  EXPECT_EQ(ArrivalsHeld(0), 8);
  EXPECT_EQ(ArrivalsHeld(8 << 20), 8);
  EXPECT_EQ(ArrivalsHeld(10 << 20), 6);
  EXPECT_EQ(ArrivalsHeld(32 << 20), 2);
  EXPECT_EQ(ArrivalsHeld(int64_t{1} << 40), 2);
}

// However many children there are, memory for two of their large shards is enough.
TEST_F(TreeReduce, LargeShardsAreHeldTwoAtATime) {
  constexpr ParameterBlocks kLarge = {(33 << 20) / static_cast<int64_t>(sizeof(float))};
  constexpr int kChildren = 4;
  const Range range = ShardRange(kLarge, 1, 0);
  const std::vector<float> values(static_cast<size_t>(range.size()), 1.0F);
  const auto push = [&](int child) {
    return transport_.Push({ObjectKind::kGradient, 4, 0, 0, child}, {range, 2, 0.5, 0, false},
                           AsBytes(std::span<const float>(values)));
  };
  CountedPulls counted(transport_);
  const AggregationPlan plan{.shards = 1, .layers = {1, kChildren}};
  TreeNode node(runtime_, interrupt_, counted, agreement_, phases_, plan, kLarge, {1, 0, 0});
  for (int child = 1; child < kChildren; ++child) ASSERT_TRUE(push(child).ok());
  const auto first = runtime_.executor.Spawn("first child", [&] {
    runtime_.clock.SleepFor(std::chrono::milliseconds(100));
    EXPECT_EQ(counted.asked, 2);
    EXPECT_TRUE(push(0).ok());
  });
  ASSERT_TRUE(node.Merge(4,
                         [&](MergedShard merged) {
                           merged.Complete();
                           EXPECT_EQ(merged.gradient.back(), 4.0F);
                           return OkStatus();
                         })
                  .ok());
  EXPECT_EQ(counted.asked, kChildren);
}

// What has come is fetched while the first child is late, which is summed before them.
TEST_F(TreeReduce, ALateChildHoldsUpNoOthersTransfer) {
  const AggregationPlan plan{.shards = 1, .layers = {1, kWaitingPulls}};
  CountedPulls counted(transport_);
  TreeNode node(runtime_, interrupt_, counted, agreement_, phases_, plan, kBlocks, {1, 0, 0});
  const Range range = ShardRange(kBlocks, 1, 0);
  const std::vector<float> values(static_cast<size_t>(range.size()), 1.0F);
  const auto push = [&](int child) {
    return transport_.Push({ObjectKind::kGradient, 4, 0, 0, child}, {range, 2, 0.5, 0, false},
                           AsBytes(std::span<const float>(values)));
  };
  for (int child = 1; child < kWaitingPulls; ++child) ASSERT_TRUE(push(child).ok());
  const auto late = runtime_.executor.Spawn("late child", [&] {
    const Instant end = runtime_.clock.Now() + std::chrono::seconds(30);
    while (counted.come < kWaitingPulls - 1 && runtime_.clock.Now() < end)
      runtime_.clock.SleepFor(std::chrono::milliseconds(1));
    EXPECT_EQ(counted.come, kWaitingPulls - 1);
    EXPECT_TRUE(push(0).ok());
  });
  ASSERT_TRUE(node.Merge(4, [](const MergedShard&) { return OkStatus(); }).ok());
}

TEST_F(TreeReduce, AnErrorOfTheReceiverEndsTheMerge) {
  TreeNode node(runtime_, interrupt_, transport_, agreement_, phases_, plan_, kBlocks, {1, 0, 0});
  for (const int child : {0, 1, 2}) PushGradient(4, child, 1);
  EXPECT_EQ(node.Merge(4, [](const MergedShard&) { return InternalError("no"); }).code(),
            StatusCode::kInternal);
}

TEST_F(TreeReduce, AnExchangeBringsTheNextWeightsAndLeavesNoGradients) {
  ShardExchange exchange(runtime_, interrupt_, transport_, agreement_, phases_, plan_, kBlocks, 1);
  for (int shard = 2; shard >= 0; --shard) {  // whichever come
    const Range range = ShardRange(kBlocks, plan_.shards, shard);
    const std::vector<float> values(static_cast<size_t>(range.size()), static_cast<float>(shard));
    ASSERT_TRUE(transport_
                    .Push({ObjectKind::kWeights, 5, 1, shard, 0},
                          {range, 6, 0.5, shard == 0 ? 6 : 0, false},
                          AsBytes(std::span<const float>(values)))
                    .ok());
  }
  const auto gradient = std::make_shared<const std::vector<float>>(kParameters, 1.0F);
  const auto weights = exchange.Exchange(4, gradient, 2, 0.5);
  ASSERT_TRUE(weights.ok()) << weights.status().ToString();
  ASSERT_TRUE(exchange.Finish().ok());
  ASSERT_EQ(std::ssize(*weights), plan_.shards);
  for (int shard = 0; shard < plan_.shards; ++shard) {
    const auto values = (*weights)[static_cast<size_t>(shard)].values<float>();
    EXPECT_EQ(std::ssize(values), ShardRange(kBlocks, plan_.shards, shard).size());
    EXPECT_EQ(values.front(), static_cast<float>(shard));
    EXPECT_EQ(values.back(), static_cast<float>(shard));
  }
  EXPECT_EQ(agreement_.end(), 6) << "the stop came with shard 0";
  EXPECT_EQ(transport_.size(), 3u) << "the weights; its own gradients are gone";
}

}  // namespace
}  // namespace lambdadnn
