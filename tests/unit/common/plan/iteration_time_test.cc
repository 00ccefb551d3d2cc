// SPDX-License-Identifier: Apache-2.0
#include "common/plan/iteration_time.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

ExchangeShape Shape(int shards, std::vector<int> layers, int spread = 1, bool clip = false) {
  ExchangeShape shape;
  shape.aggregation.shards = shards;
  shape.aggregation.layers = std::move(layers);
  shape.aggregation.spread = spread;
  shape.parameters = 64 * kBlockElements;
  shape.clip_by_global_norm = clip;
  return shape;
}

constexpr ExchangeSpeeds kLatencyOnly{.request_seconds = 1};

TEST(IterationTime, OneShardGoesThroughTheTreeOnce) {
  // PUT, 4 GETs, PUT, GET.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(1, {1, 4}), kLatencyOnly), 7);
  EXPECT_DOUBLE_EQ(SequentialIterationSeconds(Shape(1, {1, 4}), kLatencyOnly), 7);
  // PUT, 2 GETs, PUT, 2 GETs, PUT, GET.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(1, {1, 2, 4}), kLatencyOnly), 8);
}

TEST(IterationTime, MoreShardsAddTheSlowestStageEach) {
  // The root's 4 GETs and PUT are the slowest stage: 5 for each further shard.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(8, {1, 4}), kLatencyOnly), 7 + 7 * 5);
  EXPECT_DOUBLE_EQ(SequentialIterationSeconds(Shape(8, {1, 4}), kLatencyOnly), 8 * 7);
}

TEST(IterationTime, SpreadGroupsMergeSideBySide) {
  const double one = PipelinedIterationSeconds(Shape(8, {1, 8}), kLatencyOnly);
  const double four = PipelinedIterationSeconds(Shape(8, {1, 8}, 4), kLatencyOnly);
  // fill 11; 7 more shards of 9 each, or 6 uploads before the last group and 1 more shard of it.
  EXPECT_DOUBLE_EQ(one, 11 + 7 * 9);
  EXPECT_DOUBLE_EQ(four, 11 + 6 + 9);
}

TEST(IterationTime, RequestsInFlightShareTheLatencyAndNotTheBandwidth) {
  ExchangeSpeeds speeds{.server_bytes_per_second = 1e6, .request_seconds = 1};
  const ExchangeShape shape = Shape(1, {1, 8});
  const double bytes = 64.0 * kBlockElements * 4 + kExchangeHeaderBytes;
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(shape, speeds), 11 + 9 * bytes / 1e6);
  speeds.requests_in_flight = 4;
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(shape, speeds), 5 + 9 * bytes / 1e6);
}

TEST(IterationTime, NeverFasterThanTheStore) {
  const ExchangeShape shape = Shape(4, {1, 4});
  const double bytes = 64.0 * kBlockElements * 4 * (4 + 4 + 1 + 4);
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(shape, {.store_bytes_per_second = 1e6}), bytes / 1e6);
}

TEST(IterationTime, NothingLimitedTakesNoTime) {
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(4, {1, 2, 4}), {}), 0);
}

TEST(IterationTime, ClippingWaitsForAllShardsAtTheRoots) {
  const double plain = PipelinedIterationSeconds(Shape(8, {1, 4}), kLatencyOnly);
  const double clipped = PipelinedIterationSeconds(Shape(8, {1, 4}, 1, true), kLatencyOnly);
  // up 1 + 8 x 4 GETs, 8 norm PUTs, then 8 PUTs of weights and the last GET.
  EXPECT_DOUBLE_EQ(clipped, 1 + 32 + 8 + 8 + 1);
  EXPECT_GT(clipped, plain);
}

TEST(IterationTime, PipeliningIsClearlyFasterThanOneAfterAnother) {
  const ExchangeSpeeds speeds{.worker_bytes_per_second = 1e8,
                              .server_bytes_per_second = 1e8,
                              .request_seconds = 0.005,
                              .merge_bytes_per_second = 1e9};
  for (const std::vector<int>& layers : {std::vector<int>{1, 2}, {1, 2, 4}, {1, 2, 4, 8}}) {
    const ExchangeShape shape = Shape(8, layers);
    EXPECT_LT(PipelinedIterationSeconds(shape, speeds),
              0.8 * SequentialIterationSeconds(shape, speeds));
  }
}

}  // namespace
}  // namespace lambdadnn
