// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/sample_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "common/plan/sample_memory.h"

namespace lambdadnn {
namespace {

int Partitions(int workers) { return (64 + workers - 1) / workers * workers; }

std::vector<int64_t> GlobalBatch(SampleOrder& order, int64_t iteration, int workers) {
  std::vector<int64_t> batch;
  for (int rank = 0; rank < workers; ++rank) {
    const auto samples = order.Samples(iteration, workers, rank);
    batch.insert(batch.end(), samples.begin(), samples.end());
  }
  std::sort(batch.begin(), batch.end());
  return batch;
}

RC_GTEST_PROP(SampleOrder, EverySampleComesOnceAnEpochInBatchesOfTheRightSize, ()) {
  const int workers = *rc::gen::inRange(1, 20);
  const int64_t samples = *rc::gen::inRange(1, 700);
  const int64_t batch = *rc::gen::inRange(1, 100);
  SampleOrder order(*rc::gen::arbitrary<uint64_t>(), samples, Partitions(workers), batch);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<int64_t> seen;
    for (int64_t i = 0; i < order.batches_per_epoch(); ++i) {
      const auto global = GlobalBatch(order, epoch * order.batches_per_epoch() + i, workers);
      const int64_t expected = std::min(batch, samples - i * batch);
      RC_ASSERT(static_cast<int64_t>(global.size()) == expected);
      seen.insert(seen.end(), global.begin(), global.end());
    }
    std::sort(seen.begin(), seen.end());
    for (int64_t i = 0; i < samples; ++i) RC_ASSERT(seen[static_cast<size_t>(i)] == i);
  }
}

RC_GTEST_PROP(SampleOrder, ABatchDoesNotDependOnTheWorkers, ()) {
  const int64_t samples = *rc::gen::inRange(1, 700);
  SampleOrder order(3, samples, 64, *rc::gen::inRange(1, 100));
  const int64_t iteration = *rc::gen::inRange<int64_t>(0, 3 * order.batches_per_epoch());
  const auto expected = GlobalBatch(order, iteration, 1);
  for (const int workers : {2, 4, 8, 16, 32, 64})
    RC_ASSERT(GlobalBatch(order, iteration, workers) == expected);
}

RC_GTEST_PROP(SampleOrder, ARankReadsOnlyItsOwnSamples, ()) {
  const int workers = *rc::gen::inRange(1, 20);
  SampleOrder order(5, *rc::gen::inRange(1, 700), Partitions(workers), 32);
  for (int rank = 0; rank < workers; ++rank) {
    const auto own = order.RankSamples(workers, rank);
    for (int64_t i = 0; i < order.batches_per_epoch(); ++i) {
      for (const int64_t sample : order.Samples(i, workers, rank)) {
        RC_ASSERT(own.size() == 1 && sample >= own[0].begin && sample < own[0].end);
      }
    }
  }
}

int64_t LargestShareOver(int workers, int partitions, int64_t batch) {
  SampleOrder order(1, 6000, partitions, batch);
  int64_t over = 0;
  const int64_t ideal = (batch + workers - 1) / workers;
  for (int64_t i = 0; i < order.batches_per_epoch(); ++i) {
    for (int rank = 0; rank < workers; ++rank) {
      const auto share = static_cast<int64_t>(order.Samples(i, workers, rank).size());
      over = std::max(over, share - ideal);
    }
  }
  return over;
}

TEST(SampleOrder, PowersOfTwoShareFullBatchesExactly) {
  for (const int workers : {1, 2, 4, 8, 16}) {
    for (const int64_t batch : {16, 32, 64, 128, 256})
      EXPECT_EQ(LargestShareOver(workers, 64, batch), 0) << workers << " workers, batch " << batch;
  }
}

TEST(SampleOrder, OtherNumbersOfWorkersShareThemNearly) {
  for (int workers = 1; workers <= 24; ++workers) {
    for (const int64_t batch : {24, 32, 60, 100, 128, 250}) {
      EXPECT_LE(LargestShareOver(workers, Partitions(workers), batch), kMaxExtraSamples)
          << workers << " workers, batch " << batch;
    }
  }
}

TEST(SampleOrder, EpochsAndSeedsShuffleAnew) {
  SampleOrder order(1, 640, 64, 64);
  SampleOrder other(2, 640, 64, 64);
  EXPECT_NE(GlobalBatch(order, 0, 1), GlobalBatch(order, 10, 1));
  EXPECT_NE(GlobalBatch(order, 0, 1), GlobalBatch(other, 0, 1));
  // Pure: asked again, in any order, the same.
  const auto first = GlobalBatch(order, 0, 4);
  GlobalBatch(order, 15, 4);
  EXPECT_EQ(GlobalBatch(order, 0, 4), first);
}

TEST(SampleOrder, EveryBatchTakesFromEveryPartition) {
  SampleOrder order(1, 6400, 64, 128);
  for (int64_t i = 0; i < order.batches_per_epoch(); ++i) {
    std::map<int64_t, int> quota;
    for (const int64_t sample : GlobalBatch(order, i, 1)) ++quota[sample / 100];
    EXPECT_EQ(quota.size(), 64u);
    for (const auto& [partition, count] : quota) EXPECT_EQ(count, 2);
  }
}

TEST(SampleOrder, MoreRanksThanSamplesLeaveSomeWithout) {
  SampleOrder order(1, 3, 64, 2);
  int64_t with_samples = 0;
  for (int rank = 0; rank < 64; ++rank) {
    if (!order.RankSamples(64, rank).empty()) ++with_samples;
  }
  EXPECT_EQ(with_samples, 3);
}

// The order is part of what makes a run reproducible: it must not change between releases.
TEST(SampleOrder, TheFirstBatchIsPinned) {
  SampleOrder order(7, 200, 64, 8);
  EXPECT_EQ(order.Samples(0, 1, 0), (std::vector<int64_t>{0, 101, 51, 152, 26, 127, 76, 177}));
}

}  // namespace
}  // namespace lambdadnn
