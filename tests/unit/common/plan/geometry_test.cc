// SPDX-License-Identifier: Apache-2.0
// Where servers run, and who writes and reads what, over many trees.
#include "common/plan/geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lambdadnn {
namespace {

AggregationPlan OnWorkers(std::vector<int> layers, int shards, int spread) {
  AggregationPlan plan;
  plan.placement = Placement::kWorkers;
  plan.layers = std::move(layers);
  plan.shards = shards;
  plan.spread = spread;
  return plan;
}

const std::vector<std::vector<int>> kTrees = {{1, 1},       {1, 2},    {1, 4},       {1, 2, 4},
                                              {1, 2, 4, 8}, {1, 3, 7}, {1, 2, 3, 11}};

TEST(Geometry, BuffersBeginAtABlocksEdge) {
  EXPECT_EQ(VectorElements(100, 0, 16), 100) << "without any, nothing is filled up";
  EXPECT_EQ(VectorElements(100, 3, 16), 7 * 16 + 3);
  EXPECT_EQ(VectorElements(112, 3, 16), 7 * 16 + 3);
  EXPECT_EQ(VectorElements(113, 3, 16), 8 * 16 + 3);
}

TEST(Geometry, TheParentOfAChildMergesIt) {
  for (const auto& layers : kTrees) {
    const AggregationPlan plan = OnWorkers(layers, 1, 1);
    for (int level = 1; level <= plan.server_layers(); ++level) {
      for (int index = 0; index < plan.Width(level); ++index) {
        const Range children = Children(plan, level, index);
        for (auto child = static_cast<int>(children.begin); child < children.end; ++child) {
          EXPECT_EQ(ParentOf(plan, level - 1, child), index) << "level " << level;
        }
      }
    }
  }
}

TEST(Geometry, AShardIsOfTheGroupThatServesIt) {
  const AggregationPlan plan = OnWorkers({1, 4}, 12, 3);
  for (int group = 0; group < plan.spread; ++group) {
    const Range shards = GroupShards(plan, group);
    for (auto shard = static_cast<int>(shards.begin); shard < shards.end; ++shard) {
      EXPECT_EQ(GroupOfShard(plan, shard), group);
    }
  }
}

TEST(Geometry, EachServerRunsInOneWorkersFunctionBelowIt) {
  for (const auto& layers : kTrees) {
    for (const int spread : {1, 2, 4, 8}) {
      const AggregationPlan plan = OnWorkers(layers, 8, spread);
      int hosted = 0;
      size_t most = 0;
      size_t most_roots = 0;
      for (int rank = 0; rank < plan.workers(); ++rank) {
        const std::vector<ServerPosition> servers = ServersOn(plan, rank);
        hosted += static_cast<int>(servers.size());
        most = std::max(most, servers.size());
        size_t roots = 0;
        for (const ServerPosition& position : servers) {
          EXPECT_EQ(HostOf(plan, position), rank);
          if (position.level == plan.server_layers()) ++roots;
          // One of the leaves' children, followed downwards.
          int node = rank;
          for (int level = 0; level < position.level; ++level) node = ParentOf(plan, level, node);
          EXPECT_EQ(node, position.index);
        }
        most_roots = std::max(most_roots, roots);
      }
      EXPECT_EQ(hosted, plan.servers());
      const int n = plan.workers();
      EXPECT_LE(most_roots, static_cast<size_t>((spread + n - 1) / n)) << "roots are balanced";
      // Trees are uneven, and so are the shares.
      EXPECT_LE(most, static_cast<size_t>(2 * plan.servers() / n + plan.server_layers()));
    }
  }
}

TEST(Geometry, DedicatedServersRunOnNoWorker) {
  AggregationPlan plan = OnWorkers({1, 2, 4}, 2, 1);
  EXPECT_EQ(plan.server_functions(), 0);
  EXPECT_EQ(plan.servers(), 3);
  plan.placement = Placement::kDedicated;
  EXPECT_EQ(plan.server_functions(), 3);
  EXPECT_THAT(ServersOn(plan, 0), testing::IsEmpty());
}

TEST(Geometry, WithAsManyGroupsAsWorkersEachHasOneRoot) {
  const AggregationPlan plan = OnWorkers({1, 4}, 4, 4);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(ServersOn(plan, rank), testing::ElementsAre(ServerPosition{1, 0, rank}));
    EXPECT_EQ(HostOfNode(plan, 1, 0, rank), rank);
  }
}

}  // namespace
}  // namespace lambdadnn
