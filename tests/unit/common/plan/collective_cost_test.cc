// SPDX-License-Identifier: Apache-2.0
#include "common/plan/collective_cost.h"

#include <gtest/gtest.h>

#include "common/protocol/object_header.h"

namespace lambdadnn {
namespace {

ExchangeShape Shape(int shards, std::vector<int> layers, int spread, int64_t parameters,
                    bool clip = false) {
  ExchangeShape shape;
  shape.aggregation.shards = shards;
  shape.aggregation.layers = std::move(layers);
  shape.aggregation.spread = spread;
  shape.parameters = parameters;
  shape.clip_by_global_norm = clip;
  return shape;
}

TEST(CollectiveCost, HeaderSizeIsTheProtocols) {
  EXPECT_EQ(kExchangeHeaderBytes, static_cast<int64_t>(kObjectHeaderBytes));
}

TEST(CollectiveCost, OneWorkerOneServer) {
  const RequestCount cost = IterationCost(Shape(1, {1, 1}, 1, 1000));
  // Gradient up, weights down: two objects, each read once.
  EXPECT_EQ(cost.puts, 2);
  EXPECT_EQ(cost.gets, 2);
  EXPECT_EQ(cost.deletes, 2);
  EXPECT_EQ(cost.bytes_in, 2 * (4000 + 128));
  EXPECT_EQ(cost.bytes_out, 2 * (4000 + 128));
}

TEST(CollectiveCost, FlatTreeWithShards) {
  // 8 workers, K = 4: each PUTs and GETs 4; the root GETs 8 x 4 and PUTs 4.
  const RequestCount cost = IterationCost(Shape(4, {1, 8}, 1, 100000));
  EXPECT_EQ(cost.puts, 8 * 4 + 4);
  EXPECT_EQ(cost.gets, 8 * 4 + 8 * 4);
  EXPECT_EQ(cost.deletes, cost.puts);
  EXPECT_EQ(cost.bytes_in, 9 * 400000 + 36 * 128);
  EXPECT_EQ(cost.bytes_out, 16 * 400000 + 64 * 128);
}

// Every connection down is the store.
TEST(CollectiveCost, DirectCostsWhatItsLostConnectionsPutIntoTheStore) {
  for (const Placement placement : {Placement::kDedicated, Placement::kWorkers}) {
    for (const bool clip : {false, true}) {
      for (const std::vector<int>& layers :
           {std::vector<int>{1, 1}, {1, 4}, {1, 2, 4}, {1, 3, 9}}) {
        ExchangeShape shape = Shape(4, layers, 2, 6 * 16 * 1024 + 5, clip);
        shape.aggregation.placement = placement;
        RequestCount stored = IterationCost(shape);
        if (placement == Placement::kWorkers) {
          stored = {};
          for (int rank = 0; rank < shape.aggregation.workers(); ++rank) {
            stored += HostIterationCost(shape, rank);
          }
        }
        shape.aggregation.transport = TransportKind::kDirect;
        EXPECT_EQ(IterationCost(shape), RequestCount{});
        const auto all = [](const ExchangeRole&, const ExchangeRole&) { return true; };
        EXPECT_EQ(IterationCostWithout(shape, all), stored) << layers.size() << " " << clip;
        const auto none = [](const ExchangeRole&, const ExchangeRole&) { return false; };
        EXPECT_EQ(IterationCostWithout(shape, none), RequestCount{});
      }
    }
  }
}

TEST(CollectiveCost, LayersMergeEveryEdgeOnce) {
  // [1, 3, 9]: edges 9 + 3, writers 9 + 3 + 1, and 9 workers read the weights.
  const RequestCount cost = IterationCost(Shape(2, {1, 3, 9}, 1, 100000));
  EXPECT_EQ(cost.puts, 2 * (9 + 3 + 1));
  EXPECT_EQ(cost.gets, 2 * (9 + 3 + 9));
}

TEST(CollectiveCost, SpreadDividesTheWorkOfAServerAndNotTheTotal) {
  const ExchangeShape narrow = Shape(4, {1, 2, 4}, 1, 1000000);
  const ExchangeShape wide = Shape(4, {1, 2, 4}, 4, 1000000);
  EXPECT_EQ(IterationCost(narrow), IterationCost(wide));
  const RequestCount one = ServerIterationCost(wide, {.level = 2, .index = 0, .group = 3});
  EXPECT_EQ(one.gets, 2);
  EXPECT_EQ(one.puts, 1);
}

TEST(CollectiveCost, UnevenFanInIsCountedPerServer) {
  const ExchangeShape shape = Shape(1, {1, 3, 8}, 1, 10);
  int64_t gets = 0;
  for (int index = 0; index < 3; ++index) {
    gets += ServerIterationCost(shape, {.level = 1, .index = index, .group = 0}).gets;
  }
  EXPECT_EQ(gets, 8);
}

TEST(CollectiveCost, ClippingAddsOneNormObjectAShardAndReadsTheOtherGroups) {
  // 5 blocks of parameters over K = 4 shards: 1 or 2 blocks each, 5 x 8 bytes of norms in all.
  const int64_t parameters = 4 * kDefaultBlockElements + 1;
  RequestCount plain = IterationCost(Shape(4, {1, 2, 4}, 2, parameters));
  const RequestCount clipped = IterationCost(Shape(4, {1, 2, 4}, 2, parameters, true));
  EXPECT_EQ(clipped.puts - plain.puts, 4);
  EXPECT_EQ(clipped.deletes - plain.deletes, 4);
  EXPECT_EQ(clipped.gets - plain.gets, 2 * (4 - 4 / 2));
  EXPECT_EQ(clipped.bytes_in - plain.bytes_in, 5 * 8 + 4 * 128);
  EXPECT_EQ(clipped.bytes_out - plain.bytes_out, 5 * 8 + 4 * 128);
}

TEST(CollectiveCost, ClippingWithOneGroupReadsNothing) {
  const RequestCount plain = IterationCost(Shape(4, {1, 4}, 1, 1000000));
  const RequestCount clipped = IterationCost(Shape(4, {1, 4}, 1, 1000000, true));
  EXPECT_EQ(clipped.gets, plain.gets);
  EXPECT_EQ(clipped.bytes_out, plain.bytes_out);
}

TEST(CollectiveCost, SumOfRolesIsTheIteration) {
  for (const int shards : {1, 2, 6}) {
    for (const std::vector<int>& layers :
         {std::vector<int>{1, 5}, {1, 2, 5}, {1, 2, 4, 8}, {1, 3, 9}}) {
      for (const int spread : {1, 2}) {
        if (shards % spread != 0) continue;
        const ExchangeShape shape = Shape(shards, layers, spread, 123456, true);
        const RequestCount total = IterationCost(shape);
        RequestCount sum;
        for (int rank = 0; rank < layers.back(); ++rank) sum += WorkerIterationCost(shape);
        for (int server = 0; server < shape.aggregation.servers(); ++server) {
          sum += ServerIterationCost(shape, ServerAt(shape.aggregation, server));
        }
        EXPECT_EQ(total, sum);
        EXPECT_EQ(total.puts, total.deletes);
        // Every gradient object has one reader, every weight object n.
        const int64_t servers_below_root = shape.aggregation.servers() / spread - 1;
        EXPECT_EQ(total.gets,
                  shards * (2 * layers.back() + servers_below_root) + shards * (spread - 1));
      }
    }
  }
}

}  // namespace
}  // namespace lambdadnn
