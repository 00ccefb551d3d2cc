// SPDX-License-Identifier: Apache-2.0
#include "common/plan/workload.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(TrainingRate, IsALineWithoutATable) {
  const TrainingRate rate{.slope = 0.1, .intercept = -8.8};
  EXPECT_DOUBLE_EQ(rate.At(960), 87.2);
  EXPECT_LT(rate.At(64), 0);
}

TEST(TrainingRate, JoinsTablePointsAndIsConstantBeyondThem) {
  const TrainingRate rate{.slope = 9, .table = {{512, 10}, {1024, 30}, {2048, 32}}};
  EXPECT_DOUBLE_EQ(rate.At(128), 10);
  EXPECT_DOUBLE_EQ(rate.At(512), 10);
  EXPECT_DOUBLE_EQ(rate.At(768), 20);
  EXPECT_DOUBLE_EQ(rate.At(1024), 30);
  EXPECT_DOUBLE_EQ(rate.At(1536), 31);
  EXPECT_DOUBLE_EQ(rate.At(4096), 32);
}

TEST(TrainingRate, OnePointIsAConstant) {
  const TrainingRate rate{.table = {{512, 7}}};
  EXPECT_DOUBLE_EQ(rate.At(64), 7);
  EXPECT_DOUBLE_EQ(rate.At(9999), 7);
}

TEST(TrainingRate, SaturationLimitsEitherForm) {
  TrainingRate rate{.slope = 1};
  rate.max_samples_per_second = 100;
  EXPECT_DOUBLE_EQ(rate.At(99), 99);
  EXPECT_DOUBLE_EQ(rate.At(1000), 100);
  rate.table = {{1, 50}, {1000, 500}};
  EXPECT_DOUBLE_EQ(rate.At(1000), 100);
}

TEST(BytesPerSecondOf, JoinsPointsAndIsConstantBeyondThem) {
  const std::vector<WorkloadProfile::StorePoint> points = {{1, 100}, {2, 180}, {4, 300}};
  EXPECT_EQ(BytesPerSecondOf(points, 1), 100);
  EXPECT_EQ(BytesPerSecondOf(points, 2), 180);
  EXPECT_EQ(BytesPerSecondOf(points, 3), 240);
  EXPECT_EQ(BytesPerSecondOf(points, 4), 300);
  EXPECT_EQ(BytesPerSecondOf(points, 100), 300);
  EXPECT_EQ(BytesPerSecondOf({{2, 180}}, 1), 180);
}

TEST(ThreadsOf, AreTheWholeCoresOfTheQuota) {
  Platform platform;
  EXPECT_EQ(ThreadsOf(platform, 4096), 1) << "no quota";
  platform.milli_cpu_per_gib = 1000;
  EXPECT_EQ(ThreadsOf(platform, 256), 1);
  EXPECT_EQ(ThreadsOf(platform, 2047), 1);
  EXPECT_EQ(ThreadsOf(platform, 2048), 2);
  EXPECT_EQ(ThreadsOf(platform, 4096), 4);
}

}  // namespace
}  // namespace lambdadnn
