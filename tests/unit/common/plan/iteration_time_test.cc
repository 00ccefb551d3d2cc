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
  shape.parameters = 64 * kDefaultBlockElements;
  shape.clip_by_global_norm = clip;
  return shape;
}

constexpr ExchangeSpeeds kOneByOne{.request_seconds = 1, .requests_in_flight = 1};
constexpr ExchangeSpeeds kFourAtOnce{.request_seconds = 1, .requests_in_flight = 4};

TEST(IterationTime, OneShardGoesThroughTheTreeOnce) {
  // PUT, 4 GETs, PUT, GET.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(1, {1, 4}), kOneByOne), 7);
  EXPECT_DOUBLE_EQ(SequentialIterationSeconds(Shape(1, {1, 4}), kOneByOne), 7);
  // PUT, 2 GETs, PUT, 2 GETs, PUT, GET.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(1, {1, 2, 4}), kOneByOne), 8);
}

TEST(IterationTime, RequestsInFlightHideEachOthersLatency) {
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(1, {1, 4}), kFourAtOnce), 4);
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(1, {1, 5}), kFourAtOnce), 5);
  // The four uploads run side by side, and the root reads 16 objects in 4 rounds, the first of
  // which brings shard 0.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(4, {1, 4}), kFourAtOnce), 4 + 3);
  EXPECT_DOUBLE_EQ(SequentialIterationSeconds(Shape(4, {1, 4}), kFourAtOnce), 4 + 4 * 5 + 4);
}

TEST(IterationTime, MoreShardsAddTheSlowestStageEach) {
  // The root's 4 GETs are the slowest stage: 4 for each further shard.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(8, {1, 4}), kOneByOne), 7 + 7 * 4);
  EXPECT_DOUBLE_EQ(SequentialIterationSeconds(Shape(8, {1, 4}), kOneByOne), 8 * 7);
}

TEST(IterationTime, SpreadGroupsMergeSideBySide) {
  const double one = PipelinedIterationSeconds(Shape(8, {1, 8}), kOneByOne);
  const double four = PipelinedIterationSeconds(Shape(8, {1, 8}, 4), kOneByOne);
  // fill 11; 7 more shards of 8 GETs each, or 6 uploads before the last group and 1 more shard.
  EXPECT_DOUBLE_EQ(one, 11 + 7 * 8);
  EXPECT_DOUBLE_EQ(four, 11 + 6 + 8);
}

TEST(IterationTime, RequestsInFlightShareTheBandwidth) {
  ExchangeSpeeds speeds{
      .server_bytes_per_second = 1e6, .request_seconds = 1, .requests_in_flight = 1};
  const ExchangeShape shape = Shape(1, {1, 8});
  const double bytes = 64.0 * kDefaultBlockElements * 4 + kExchangeHeaderBytes;
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(shape, speeds), 11 + 9 * bytes / 1e6);
  speeds.requests_in_flight = 4;
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(shape, speeds), 5 + 9 * bytes / 1e6);
}

TEST(IterationTime, BandwidthOfAWorkerCountsForEveryShard) {
  const ExchangeShape shape = Shape(4, {1, 1});
  const double bytes = 16.0 * kDefaultBlockElements * 4 + kExchangeHeaderBytes;
  // The last of four shards is up after 4 transfers, and one more brings it down.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(shape, {.worker_bytes_per_second = 1e6}),
                   5 * bytes / 1e6);
}

TEST(IterationTime, MergesAndTheUpdateTakeTheServersTime) {
  const ExchangeShape shape = Shape(1, {1, 4});
  const double bytes = 64.0 * kDefaultBlockElements * 4 + kExchangeHeaderBytes;
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(shape, {.merge_bytes_per_second = 1e8}),
                   5 * bytes / 1e8);
}

TEST(IterationTime, NeverFasterThanTheStore) {
  const ExchangeShape shape = Shape(4, {1, 4});
  const double bytes = 64.0 * kDefaultBlockElements * 4 * (4 + 4 + 1 + 4);
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(shape, {.store_bytes_per_second = 1e6}), bytes / 1e6);
}

ExchangeShape Hosted(ExchangeShape shape) {
  shape.aggregation.placement = Placement::kWorkers;
  return shape;
}

TEST(IterationTime, WhatStaysInAFunctionIsNotTransferred) {
  // PUT, 3 GETs, PUT, GET.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Hosted(Shape(1, {1, 4})), kOneByOne), 6);
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Hosted(Shape(1, {1, 2})), kOneByOne), 4);
  // Three PUTs each, and as many GETs of weights.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Hosted(Shape(4, {1, 4}, 4)), kOneByOne), 6 + 2);
  // PUT, 1 GET and PUT of a leaf of two workers, 2 GETs and PUT of the root, GET.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Hosted(Shape(1, {1, 2, 3})), kOneByOne),
                   1 + 2 + 3 + 1);
}

TEST(IterationTime, WhatStaysInAFunctionNeedsNothingOfTheStore) {
  const double bytes = 64.0 * kDefaultBlockElements * 4;
  // Three gradients up and down, weights up once and down three times.
  EXPECT_DOUBLE_EQ(
      PipelinedIterationSeconds(Hosted(Shape(4, {1, 4}, 4)), {.store_bytes_per_second = 1e6}),
      (3 + 3 + 1 + 3) * bytes / 1e6);
}

TEST(IterationTime, ARootThatServesSendsToTheOtherWorkers) {
  const double bytes = 64.0 * kDefaultBlockElements * 4 + kExchangeHeaderBytes;
  const ExchangeSpeeds speeds{.server_bytes_per_second = 1e6, .root_sends_to_each = true};
  // 4 received, sent 4 times; of workers that serve 3.
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(1, {1, 4}), speeds), 8 * bytes / 1e6);
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Hosted(Shape(1, {1, 4})), speeds), 6 * bytes / 1e6);
}

TEST(IterationTime, NothingLimitedTakesNoTime) {
  EXPECT_DOUBLE_EQ(PipelinedIterationSeconds(Shape(4, {1, 2, 4}), {}), 0);
}

TEST(IterationTime, ClippingWaitsForAllShardsAtTheRoots) {
  const double plain = PipelinedIterationSeconds(Shape(8, {1, 4}), kOneByOne);
  const double clipped = PipelinedIterationSeconds(Shape(8, {1, 4}, 1, true), kOneByOne);
  // up 1 + 8 x 4 GETs, 8 norm PUTs, then the weights: PUT and GET of the first, and 7 more.
  EXPECT_DOUBLE_EQ(clipped, 1 + 32 + 8 + 2 + 7);
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
