// SPDX-License-Identifier: Apache-2.0
#include "common/base/request_latency.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lambdadnn {
namespace {

TEST(LatencyHistogram, EachBucketHoldsWhatIsBelowItsBoundAndNotBelowTheOneBefore) {
  for (size_t bucket = 0; bucket < LatencyHistogram::kBuckets; ++bucket) {
    LatencyHistogram histogram;
    if (bucket > 0) histogram.Add(LatencyHistogram::UpperBound(bucket - 1));
    const double above = LatencyHistogram::UpperBound(bucket);
    histogram.Add(std::isinf(above) ? 1e6 : std::nextafter(above, 0));
    EXPECT_EQ(histogram.counts[bucket], bucket > 0 ? 2 : 1) << bucket;
  }
  EXPECT_DOUBLE_EQ(LatencyHistogram::UpperBound(0), 1e-4);
  EXPECT_DOUBLE_EQ(LatencyHistogram::UpperBound(14), 1.6384);
  EXPECT_TRUE(std::isinf(LatencyHistogram::UpperBound(15)));
}

TEST(LatencyHistogram, TellsMeanAndBoundsOfQuantiles) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Mean(), 0);
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  for (int i = 0; i < 99; ++i) histogram.Add(0.003);
  histogram.Add(60);
  EXPECT_EQ(histogram.Count(), 100);
  EXPECT_NEAR(histogram.Mean(), (99 * 0.003 + 60) / 100, 1e-12);
  EXPECT_DOUBLE_EQ(histogram.Quantile(0.5), 0.0032);
  EXPECT_DOUBLE_EQ(histogram.Quantile(0.99), 0.0032);
  EXPECT_DOUBLE_EQ(histogram.Quantile(1), 1.6384) << "what is known of the last bucket";
}

TEST(RequestLatencies, AddUpByKind) {
  RequestLatencies all;
  RequestLatencies more;
  all[RequestKind::kPut].Add(0.001);
  more[RequestKind::kPut].Add(0.001);
  more[RequestKind::kMiss].Add(0.5);
  all += more;
  EXPECT_EQ(all[RequestKind::kPut].Count(), 2);
  EXPECT_DOUBLE_EQ(all[RequestKind::kPut].seconds, 0.002);
  EXPECT_EQ(all[RequestKind::kMiss].Count(), 1);
  EXPECT_EQ(all[RequestKind::kGet].Count(), 0);
}

}  // namespace
}  // namespace lambdadnn
