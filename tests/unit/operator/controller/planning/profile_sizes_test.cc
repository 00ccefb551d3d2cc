// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning/profile_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using testing::ElementsAre;

// 1000 milli-CPU a GiB, so that what takes a core takes twice as long in 512 MiB.
Platform OneCoreAGib() {
  Platform platform;
  platform.memory = {256, 1024, 64};
  platform.milli_cpu_per_gib = 1000;
  platform.max_functions = 4;
  platform.prices.gib_second = 1e-5;
  platform.prices.currency = "USD";
  return platform;
}

const ProfilePlan kThreeSizes = {{1024, 640, 256}, 1, 0, 32};

// Steps of one thread: CPU time is what they take with a core of their own.
ProfileSample Sampled(int memory_mib, double seconds, double cpu_seconds) {
  ProfileSample sample;
  sample.memory_mib = memory_mib;
  sample.record.profile_iteration_seconds = std::vector<double>(8, seconds);
  sample.record.metrics = {{"trainingSamples", 6400},
                           {"parameters", 1000},
                           {"stepCpuSeconds", cpu_seconds},
                           {"startCpuSeconds", 0.3}};
  return sample;
}

Job JobWith(const Objective& objective) {
  Job job;
  job.spec.objective = objective;
  job.spec.training.epochs = 2;
  job.spec.training.global_batch_size = 64;
  return job;
}

Objective Deadline(double seconds) {
  Objective objective;
  objective.deadline_seconds = seconds;
  return objective;
}

std::vector<int> SizesOf(const std::vector<ProfileSample>& samples) {
  std::vector<int> sizes;
  for (const ProfileSample& sample : samples) sizes.push_back(sample.memory_mib);
  return sizes;
}

TEST(ProfileSizes, TheLargestIsFirst) {
  EXPECT_EQ(NextProfileSize(JobWith(Deadline(60)), OneCoreAGib(), {}, kThreeSizes, {}), 1024);
  // All others are derived from it.
  EXPECT_EQ(NextProfileSize(JobWith(Deadline(60)), OneCoreAGib(), {}, kThreeSizes,
                            {Sampled(256, 0.4, 0.1)}),
            1024);
}

TEST(ProfileSizes, ThenTheSizeThatThePlanWouldUse) {
  // A fifth of a core is all that steps use: the cheapest plan has the least memory.
  const std::vector<ProfileSample> largest = {Sampled(1024, 0.1, 0.02)};
  const Job slow = JobWith(Deadline(1e6));
  EXPECT_EQ(NextProfileSize(slow, OneCoreAGib(), {}, kThreeSizes, largest), 256);
  EXPECT_EQ(NextProfileSize(slow, OneCoreAGib(), {}, kThreeSizes,
                            {Sampled(256, 0.1, 0.02), Sampled(1024, 0.1, 0.02)}),
            std::nullopt);
  // As fast as can be: the largest, which has been measured.
  Objective fastest;
  fastest.budget = 1e6;
  EXPECT_EQ(
      NextProfileSize(JobWith(fastest), OneCoreAGib(), {}, kThreeSizes, {Sampled(1024, 0.1, 0.1)}),
      std::nullopt);
}

TEST(ProfileSizes, WhereNoPlanMeetsTheObjectiveAllAreMeasured) {
  const Job late = JobWith(Deadline(1e-3));
  std::vector<ProfileSample> measured = {Sampled(1024, 0.1, 0.1)};
  EXPECT_EQ(NextProfileSize(late, OneCoreAGib(), {}, kThreeSizes, measured), 640);
  measured.push_back(Sampled(640, 0.16, 0.1));
  EXPECT_EQ(NextProfileSize(late, OneCoreAGib(), {}, kThreeSizes, measured), 256);
  measured.push_back(Sampled(256, 0.4, 0.1));
  EXPECT_EQ(NextProfileSize(late, OneCoreAGib(), {}, kThreeSizes, measured), std::nullopt);
}

TEST(ProfileSizes, WhatIsLeftOutIsDerivedFromTheNextLargerSize) {
  const std::vector<ProfileSample> samples = WithDerivedSamples(
      {Sampled(640, 0.2, 0.1), Sampled(1024, 0.1, 0.1)}, OneCoreAGib(), kThreeSizes);
  EXPECT_THAT(SizesOf(samples), ElementsAre(1024, 640, 256));
  EXPECT_EQ(samples[1].record.profile_iteration_seconds.front(), 0.2) << "as measured";
  const ProfileSample derived = AtSize(Sampled(640, 0.2, 0.1), OneCoreAGib(), 256);
  EXPECT_EQ(samples[2].record.profile_iteration_seconds, derived.record.profile_iteration_seconds);
}

// 0.1 s of CPU time within 0.12 s, at five eighths of a core, is quota that was saved up.
TEST(ProfileSizes, AMeasuredSizeIsNoFasterThanItsQuotaLets) {
  const std::vector<ProfileSample> samples = WithDerivedSamples(
      {Sampled(640, 0.12, 0.1), Sampled(1024, 0.1, 0.1)}, OneCoreAGib(), kThreeSizes);
  EXPECT_DOUBLE_EQ(samples[1].record.profile_iteration_seconds.front(), 0.1 / 0.625);
}

}  // namespace
}  // namespace lambdadnn
