// SPDX-License-Identifier: Apache-2.0
#include "common/base/statistics.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(Statistics, OfNoneIsZero) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Quantile({}, 0.5), 0);
  EXPECT_EQ(Mean({}), 0);
  EXPECT_EQ(StandardDeviation({}), 0);
}

TEST(Statistics, OfAFewValues) {
  EXPECT_EQ(Median({5, 1, 3}), 3);
  EXPECT_EQ(Median({5, 1, 3, 4}), 4);
  EXPECT_EQ(Mean({5, 1, 3}), 3);
  EXPECT_DOUBLE_EQ(StandardDeviation({2, 4, 4, 4, 5, 5, 7, 9}), 2);
  EXPECT_EQ(QuartileDeviation({}), 0);
  EXPECT_DOUBLE_EQ(QuartileDeviation({900, 2, 1, 3, 4, 5, 6, 7, 8}), 4 / 1.349);
}

TEST(Statistics, QuantilesOfTheStandardNormal) {
  EXPECT_NEAR(NormalQuantile(0.5), 0, 1e-12);
  EXPECT_NEAR(NormalQuantile(0.9), 1.2815515655, 1e-9);
  EXPECT_NEAR(NormalQuantile(0.1), -1.2815515655, 1e-9);
  EXPECT_NEAR(NormalQuantile(0.99), 2.3263478740, 1e-9);
  EXPECT_NEAR(NormalQuantile(0.99997), 4.0128108, 1e-6);
}

TEST(Statistics, AQuantileLiesBetweenTwoValues) {
  EXPECT_EQ(Quantile({7}, 0.25), 7);
  EXPECT_EQ(Quantile({5, 1, 3}, 0), 1);
  EXPECT_EQ(Quantile({5, 1, 3}, 1), 5);
  EXPECT_EQ(Quantile({5, 1, 3}, 0.5), 3);
  EXPECT_EQ(Quantile({5, 1, 3}, 0.75), 4);
  EXPECT_EQ(Quantile({5, 1, 3}, 2), 5) << "beyond all of them";
}

// Harter, Expected values of normal order statistics, Biometrika 48 (1961).
TEST(Statistics, TheLargestOfSeveralNormalDeviates) {
  EXPECT_NEAR(ExpectedLargest(1), 0, 1e-12);
  EXPECT_NEAR(ExpectedLargest(2), 0.5642, 0.03);
  EXPECT_NEAR(ExpectedLargest(4), 1.0294, 0.03);
  EXPECT_NEAR(ExpectedLargest(10), 1.5388, 0.03);
  EXPECT_NEAR(ExpectedLargest(100), 2.5076, 0.03);
}

}  // namespace
}  // namespace lambdadnn
