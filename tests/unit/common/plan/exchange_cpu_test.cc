// SPDX-License-Identifier: Apache-2.0
#include "common/plan/exchange_cpu.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

ExchangeShape Shape(std::vector<int> layers, int shards, int spread) {
  ExchangeShape shape;
  shape.aggregation.layers = std::move(layers);
  shape.aggregation.shards = shards;
  shape.aggregation.spread = spread;
  shape.parameters = 1000;  // 4,000 bytes
  return shape;
}

constexpr TransferCpu kCpu = {.push_seconds = 1,
                              .push_seconds_per_byte = 0.01,
                              .pull_seconds = 0.1,
                              .pull_seconds_per_byte = 0.001};

TEST(ExchangeCpu, AWorkerPushesAndPullsEachShardAndTheWholeVectorOnce) {
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 1, 1), kCpu, 0, 0).WorkerSeconds(),
                   1.1 + 4000 * 0.011);
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 8, 2), kCpu, 0, 0).WorkerSeconds(),
                   8 * 1.1 + 4000 * 0.011);
}

TEST(ExchangeCpu, AServerPullsFromItsChildrenAndPushesOnce) {
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 2, 1), kCpu, 0, 0).server_seconds,
                   2 * (4 * 0.1 + 1) + 4000 * (4 * 0.001 + 0.01));
  // Half of the shards each.
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 2, 2), kCpu, 0, 0).server_seconds,
                   4 * 0.1 + 1 + 2000 * (4 * 0.001 + 0.01));
}

TEST(ExchangeCpu, TheBusiestServerIsTheOneWithTheMostChildren) {
  // 5 workers over 2 servers: one of them has 3.
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 2, 5}, 1, 1), kCpu, 0, 0).server_seconds,
                   3 * 0.1 + 1 + 4000 * (3 * 0.001 + 0.01));
}

TEST(ExchangeCpu, MergingPassesOverEachChildAndTheSum) {
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 1, 1), {}, 1e3, 0).server_seconds, 5 * 4000 / 1e3);
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 1, 1), {}, 0, 0).server_seconds, 0);
}

TEST(ExchangeCpu, TheUpdateIsTheRootsAlone) {
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 1, 1), {}, 1e3, 0.5).server_seconds,
                   4 * 4000 / 1e3 + 4000 * 0.5);
  // The leaves have three children each, the root two: without its update it is not the busiest.
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 2, 5}, 1, 1), {}, 1e3, 0.0001).server_seconds,
                   3 * 4000 / 1e3);
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 2, 5}, 1, 1), {}, 1e3, 0.5).server_seconds,
                   2 * 4000 / 1e3 + 4000 * 0.5);
}

}  // namespace
}  // namespace lambdadnn
