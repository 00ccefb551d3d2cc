// SPDX-License-Identifier: Apache-2.0
// Functions that run out of memory, and the plans that follow; in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controller/planning/planning.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class OutOfMemoryTest : public JobLifeTest {
 protected:
  // Two workers of 512 MiB or more, the cheapest there are; no failure is forgiven.
  OutOfMemoryTest() {
    job_ = JobWorld::MinimalJob();
    job_["spec"]["objective"] = {{"deadlineSeconds", 100000}};
    job_["spec"]["functions"] = {{"min", 2}, {"max", 2}, {"memory", {{"min", "512Mi"}}}};
    job_["spec"]["backoffLimit"] = 0;
    job_["spec"]["profile"]["trainingRate"] = {{"slope", "0"}, {"intercept", "500"}};
    job_["spec"]["profile"]["workerBaseMemory"] = "100Mi";
    job_["spec"]["profile"]["workerBytesPerSample"] = "1024";
  }
  void Kill(const std::string& role) {
    world_.functions.Kill(world_.functions.InstanceOf(role), FunctionEnd::kOutOfMemory);
  }
  bool RunUntilRevision(int revision) {
    return world_.RunUntil(
        [&] {
          const Job job = world_.Read();
          return job.status.plan.has_value() && job.status.plan->revision == revision;
        },
        120);
  }
  bool Degraded(const std::string& reason) {
    return world_.RunUntil([&] { return world_.Reason("Degraded") == "True/" + reason; }, 60);
  }
  std::string Message(const std::string& condition) {
    return FindCondition(world_.Read(), condition)->message;
  }

  Json job_;
};

TEST_F(OutOfMemoryTest, TheNextPlanGivesTheWorkersMore) {
  world_.Create(job_);
  ASSERT_TRUE(RunUntilIteration(30));
  const int before = world_.Read().status.plan->memory_mib;
  world_.functions.logs[world_.functions.InstanceOf("worker-1")] = "begins\nallocates 90 MiB\n";
  Kill("worker-1");
  ASSERT_TRUE(Degraded("OOMKilled"));
  // 100 MiB, three times 4,000 bytes, and 32 samples.
  EXPECT_THAT(
      Message("Degraded"),
      AllOf(HasSubstr("worker-1 ran out of memory and was killed (OOMKilled)"),
            HasSubstr("it had " + std::to_string(before) + " MiB"), HasSubstr("it was to need 101"),
            HasSubstr("the next plan gives more"), HasSubstr("its last words: allocates 90 MiB")));
  ASSERT_TRUE(RunUntilRevision(2));
  const Job replanned = world_.Read();
  EXPECT_GE(replanned.status.plan->memory_mib, before * 5 / 4);
  EXPECT_EQ(replanned.status.execution.too_small_worker_mib, before);
  EXPECT_EQ(replanned.status.execution.failures, 0);
  EXPECT_EQ(replanned.status.plan_history.at(1).reason,
            "functions ran out of memory and were killed");
  // It is still known after another change of the objective, by another controller.
  world_.RestartController();
  world_.Patch({{"spec", {{"objective", {{"deadlineSeconds", 90000}}}}}});
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Provisioned") == "True/PlanKept"; }, 60));
  EXPECT_GE(world_.Read().status.plan->memory_mib, before * 5 / 4);
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  ExpectNothingLeft();
}

TEST_F(OutOfMemoryTest, AndTheServers) {
  world_.Create(job_);
  ASSERT_TRUE(RunUntilIteration(30));
  const Plan before = *world_.Read().status.plan;
  Kill("server-0");
  ASSERT_TRUE(RunUntilRevision(2));
  const Plan after = *world_.Read().status.plan;
  EXPECT_GE(after.server_memory_mib, before.server_memory_mib * 5 / 4);
  EXPECT_EQ(after.memory_mib, before.memory_mib);
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(OutOfMemoryTest, BeforeTheyAreReadyAsWell) {
  world_.functions.die_at_start = FunctionEnd::kOutOfMemory;
  world_.Create(job_);
  ASSERT_TRUE(Degraded("OOMKilled"));
  world_.functions.die_at_start.reset();
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job done = world_.Read();
  EXPECT_GT(done.status.plan->memory_mib, done.status.execution.too_small_worker_mib);
  EXPECT_GT(done.status.execution.too_small_worker_mib, 0);
}

TEST_F(OutOfMemoryTest, WhatTheSpecFixesIsTriedAgainAndNamed) {
  job_["spec"]["objective"] = {{"fixed", {{"functions", 2}, {"memory", "512Mi"}}}};
  job_["spec"]["backoffLimit"] = 1;
  world_.Create(job_);
  ASSERT_TRUE(RunUntilIteration(30));
  Kill("worker-0");
  ASSERT_TRUE(Degraded("OOMKilled"));
  EXPECT_THAT(Message("Degraded"), HasSubstr("raise spec.objective.fixed.memory"));
  EXPECT_EQ(world_.Read().status.execution.failures, 1);
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.plan->revision, 1);
}

TEST_F(OutOfMemoryTest, AJobThatFitsIntoNoMemoryFailsInTheEnd) {
  job_["spec"]["functions"]["memory"]["max"] = "704Mi";  // a quarter more, and no more than that
  world_.Create(job_);
  bool grew = false;
  for (int kills = 0; kills < 8 && world_.Reason("FailureTarget").empty(); ++kills) {
    if (!world_.RunUntil([&] { return !world_.functions.InstanceOf("worker-0").empty(); }, 60)) {
      break;
    }
    Kill("worker-0");
    world_.RunUntil([&] { return world_.functions.InstanceOf("worker-0").empty(); }, 60);
    grew = grew || world_.Read().status.execution.too_small_worker_mib > 0;
  }
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_TRUE(grew);
  EXPECT_EQ(world_.Reason("Failed"), "True/BackoffLimitExceeded");
  EXPECT_THAT(Message("Failed"), HasSubstr("raise spec.functions.memory.max"));
}

TEST_F(OutOfMemoryTest, WithoutRoomForMoreItSaysWhatWasTooSmall) {
  // Capacity for the first plan alone.
  job_["spec"]["aggregation"]["serverMemory"] = "256Mi";
  job_["spec"]["functions"]["memory"] = {{"min", "512Mi"}, {"max", "1Gi"}};
  world_.options.platform.total_memory_mib = 2 * 512 + 256 + 100;
  world_.RestartController();
  world_.Create(job_);
  ASSERT_TRUE(RunUntilIteration(30));
  ASSERT_EQ(world_.Read().status.plan->memory_mib, 512);
  Kill("worker-1");
  ASSERT_TRUE(world_.RunUntilFinished(200));
  ASSERT_EQ(world_.Reason("Failed"), "True/OutOfMemory");
  EXPECT_THAT(Message("Failed"), HasSubstr("workers of 512 MiB ran out of memory and were killed"));
  EXPECT_THAT(world_.functions.Live(), testing::IsEmpty());
}

}  // namespace
}  // namespace lambdadnn
