// SPDX-License-Identifier: Apache-2.0
// Jobs without dedicated parameter servers, in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/job_world.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::SizeIs;

TEST_F(JobLifeTest, WorkersServeWhereTheJobSaysSo) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["aggregation"]["placement"] = "Workers";
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.loss.has_value(); }, 60));
  EXPECT_THAT(world_.functions.Live(), SizeIs(2)) << "no parameter server";
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const Job done = world_.Read();
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(done.status.model_digest, "digest-100");
  EXPECT_EQ(done.status.plan->aggregation.placement, Placement::kWorkers);
  EXPECT_EQ(done.status.usage.slices, 2);
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, WhoServesIsThePlannersChoiceUnlessTheJobSays) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["aggregation"] = Json::object();
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Read().status.plan->aggregation.placement, Placement::kWorkers);
}

// Each was a server, perhaps, so nobody joins in the midst of a round.
TEST_F(JobLifeTest, ALostWorkerThatServesFallsBackToTheNewestCheckpoint) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["aggregation"]["placement"] = "Workers";
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.Kill(world_.functions.Live().front());
  ASSERT_TRUE(world_.RunUntilFinished(240));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.incarnation, 1);
  EXPECT_EQ(world_.Read().status.execution.failures, 0);
  ExpectNothingLeft();
}

}  // namespace
}  // namespace lambdadnn
