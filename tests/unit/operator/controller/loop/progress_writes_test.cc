// SPDX-License-Identifier: Apache-2.0
// How often status is written for mere progress.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "common/json/json_path.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"
#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

class ProgressWritesTest : public testing::Test {
 protected:
  void SetUp() override {
    world_.options.progress_seconds = ControllerOptions().progress_seconds;
    world_.options.max_progress_writes_per_second = 2;
    world_.most_seconds_between_passes = 0.05;
    world_.RestartController();
  }
  static Json LongJob(const std::string& name) {
    Json job = JobWorld::MinimalJob();
    job["metadata"]["name"] = name;
    job["spec"]["training"]["epochs"] = 100;
    return job;
  }
  // Writes to each of the jobs within `seconds` of virtual time.
  std::map<std::string, int> WritesIn(double seconds, const std::vector<std::string>& names) {
    std::map<std::string, int> writes;
    std::map<std::string, std::string> versions;
    const auto count = [&] {
      for (const std::string& name : names) {
        const auto job = world_.server.Peek(ServerlessTrainingJobType(), {"default", name});
        const std::string version = MetadataText(*job, "resourceVersion");
        if (std::string& last = versions[name]; last != version) {
          writes[name] += last.empty() ? 0 : 1;
          last = version;
        }
      }
      return false;
    };
    count();
    world_.RunUntil(count, seconds);
    return writes;
  }
  bool AllTrain(const std::vector<std::string>& names) {
    return world_.RunUntil(
        [&] {
          return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
            const auto job = world_.server.Peek(ServerlessTrainingJobType(), {"default", name});
            const Json* iteration = FindPath(*job, {"status", "progress", "iteration"});
            return iteration != nullptr && *iteration >= 10;
          });
        },
        120);
  }

  // Checkpoints are told at once: there are none but the first.
  JobWorld world_{FakeFunctionsOptions{.checkpoint_seconds = 1000}};
};

TEST_F(ProgressWritesTest, OneJobIsWrittenEveryTwoSecondsHoweverFastItTrains) {
  world_.Create(LongJob("one"));
  ASSERT_TRUE(AllTrain({"one"}));
  const int writes = WritesIn(40, {"one"})["one"];
  EXPECT_LE(writes, 20);
  EXPECT_GE(writes, 18);
}

TEST_F(ProgressWritesTest, TheFirstIterationIsShownAtOnce) {
  const auto shown = [&] { return world_.Read().status.progress.iteration; };
  world_.Create(LongJob("digits"));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.phase == "Running"; }, 60));
  ASSERT_EQ(shown(), 0) << "it runs before it has progress";
  ASSERT_TRUE(world_.RunUntil([&] { return world_.functions.iterations_done() > 0; }, 60));
  const Instant done = world_.time.clock.Now();
  ASSERT_TRUE(world_.RunUntil([&] { return shown() > 0; }, 60));
  EXPECT_LT(world_.time.clock.Now() - done, FromSeconds(0.5));
}

TEST_F(ProgressWritesTest, ManyJobsShareTheWritesOfASecond) {
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) names.push_back("job-" + std::to_string(i));
  for (const std::string& name : names) world_.Create(LongJob(name));
  ASSERT_TRUE(AllTrain(names));
  int sum = 0;
  for (const auto& [name, writes] : WritesIn(20, names)) {
    EXPECT_LE(writes, 5) << name;  // every 4 s
    EXPECT_GE(writes, 4) << name;
    sum += writes;
  }
  EXPECT_LE(sum, 2 * 20);
}

TEST_F(ProgressWritesTest, WhatWasHeldBackComesNotAllAtOnce) {
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) names.push_back("job-" + std::to_string(i));
  for (const std::string& name : names) world_.Create(LongJob(name));
  ASSERT_TRUE(AllTrain(names));
  world_.time.clock.SleepFor(FromSeconds(20));  // nobody looks
  int sum = 0;
  for (const auto& [name, writes] : WritesIn(1, names)) sum += writes;
  EXPECT_GE(sum, 2);
  EXPECT_LE(sum, 2 * 2 + 1) << "those of this second and of one before";
}

}  // namespace
}  // namespace lambdadnn
