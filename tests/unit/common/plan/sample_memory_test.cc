// SPDX-License-Identifier: Apache-2.0
#include "common/plan/sample_memory.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

constexpr int64_t kMib = 1 << 20;

SampleShare Images() {
  SampleShare share;
  share.training = 1000;
  share.test = 400;
  share.sample_bytes = kMib / 8;
  share.batch_samples = 36;
  share.batch_bytes = 10 * kMib;
  return share;
}

TEST(SampleMemory, WithoutKeptSamplesABatchAndAnEvaluationsNeedMemory) {
  const SampleShare share = Images();
  EXPECT_EQ(WholeShareBytes(share), 1400 * kMib / 8);
  EXPECT_EQ(TrainingSamplesAtOnce(share), 36) << "a batch, as it takes more than 4 MiB";
  EXPECT_EQ(TestSamplesAtOnce(share), kEvaluationBatch);
  EXPECT_EQ(LeastShareBytes(share), (36 + 256) * kMib / 8 + 1400 * 4 + 2 * 10 * kMib);
  SampleShare small = share;
  small.sample_bytes = 1024;
  EXPECT_EQ(TrainingSamplesAtOnce(small), 1000) << "4 MiB at once, of as many as there are";
  small.test = 0;
  EXPECT_EQ(TestSamplesAtOnce(small), 0);
}

TEST(SampleMemory, TrainingSamplesAreKeptFirst) {
  const SampleShare share = Images();
  const int64_t least = LeastShareBytes(share);
  const int64_t one = share.sample_bytes;
  EXPECT_EQ(KeptOf(share, least), (KeptSamples{0, 0}));
  EXPECT_EQ(KeptOf(share, least - 1), (KeptSamples{0, 0}));
  EXPECT_EQ(KeptOf(share, least + one - 1), (KeptSamples{0, 0}));
  EXPECT_EQ(KeptOf(share, least + one), (KeptSamples{1, 0}));
  SampleShare many_tests = share;
  many_tests.test = 4000;
  const int64_t more = LeastShareBytes(many_tests);
  EXPECT_EQ(KeptOf(many_tests, more + 1000 * one), (KeptSamples{1000, 0}));
  EXPECT_EQ(KeptOf(many_tests, more + 1300 * one), (KeptSamples{1000, 300}));
  EXPECT_EQ(KeptOf(share, WholeShareBytes(share) - 1), (KeptSamples{947, 0}))
      << "a byte too little, and what is read again needs memory, too";
  EXPECT_EQ(KeptOf(share, WholeShareBytes(share)), (KeptSamples{1000, 400}));
}

}  // namespace
}  // namespace lambdadnn
