// SPDX-License-Identifier: Apache-2.0
// Jobs on a platform that a cluster narrows, or that refuses their functions.
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSubsetOf;

class ClusterLimitsTest : public JobLifeTest {
 protected:
  std::string Message(const std::string& condition) {
    const Job job = world_.Read();
    const Condition* found = FindCondition(job, condition);
    return found == nullptr ? "" : found->message;
  }
  static Json PlannedJob() {
    Json job = JobWorld::MinimalJob();
    job["spec"]["objective"] = {{"deadlineSeconds", 600}};
    job["spec"]["aggregation"] = JobWorld::DedicatedServers();
    return job;
  }
};

TEST_F(ClusterLimitsTest, APlanStaysWithinWhatTheClusterAllows) {
  ClusterLimits limits;
  limits.max_timeout_seconds = 60;
  limits.nodes = std::vector<FreeNode>{{400, 4000, 10}, {400, 4000, 10}};
  world_.functions.limits = limits;
  world_.Create(PlannedJob());
  ASSERT_TRUE(world_.RunUntilFinished(600));
  const Job job = world_.Read();
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_LE(job.status.plan->memory_mib, 400);
  EXPECT_THAT(Message("Provisioned"), HasSubstr("the cluster allows no more: "));
  EXPECT_THAT(Message("Provisioned"), HasSubstr("a request ends after 60 s"));
  EXPECT_EQ(world_.Reason("Degraded"), "");
}

// Else they would wait for ever for a node that is large enough.
TEST_F(ClusterLimitsTest, FunctionsThatProfileFindRoomOnANodeAndKeepTheirSize) {
  ClusterLimits limits;
  limits.nodes = std::vector<FreeNode>{{400, 4000, 10}, {400, 4000, 10}};
  world_.functions.limits = limits;
  Json job = PlannedJob();
  job["spec"].erase("profile");
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.functions.requests().empty(); }, 60));
  limits.nodes = std::vector<FreeNode>{{300, 4000, 10}, {400, 4000, 10}};
  world_.functions.limits = limits;
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  std::vector<int> sizes;
  for (const auto& [when, request] : world_.functions.requests()) {
    if (request.role().kind != RoleKind::kProfile || request.role().rank > 0) continue;
    sizes.push_back(request.plan.memory_mib);
  }
  ASSERT_FALSE(sizes.empty());
  EXPECT_EQ(sizes.front(), 384);
  EXPECT_THAT(sizes, IsSubsetOf({384, 320, 256}));
  EXPECT_LE(world_.Read().status.plan->memory_mib, 384);
}

TEST_F(ClusterLimitsTest, SlicesEndBeforeTheClustersTimeout) {
  ClusterLimits limits;
  limits.max_timeout_seconds = 3;
  world_.functions.limits = limits;
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_GE(world_.Read().status.usage.slices, 6) << "several rounds of three roles";
}

TEST_F(ClusterLimitsTest, AClusterThatIsTooSmallNowIsWaitedFor) {
  ClusterLimits limits;
  limits.nodes = std::vector<FreeNode>{{300, 4000, 10}};
  world_.functions.limits = limits;
  world_.Create(JobWorld::MinimalJob());  // two functions of 512 MiB
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Provisioned") == "False/ClusterTooSmall"; }, 60));
  EXPECT_THAT(Message("Provisioned"), HasSubstr("the most that a node has left"));
  EXPECT_EQ(world_.Read().status.phase, "Pending");
  const auto told = world_.told.size();
  EXPECT_FALSE(world_.RunUntilFinished(60));
  EXPECT_EQ(world_.told.size(), told) << "nothing is said twice";
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  world_.functions.limits = ClusterLimits{};
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(ClusterLimitsTest, WithoutRoomForTheSmallestFunctionTheObstacleIsTold) {
  ClusterLimits limits;
  limits.nodes.emplace();
  world_.functions.limits = limits;
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Provisioned") == "False/ClusterTooSmall"; }, 60));
  EXPECT_THAT(Message("Provisioned"), HasSubstr("less than the smallest of 256 MiB"));
}

TEST_F(ClusterLimitsTest, ALimitOfScaleIsToldBeforeAnyFunctionIsMade) {
  ClusterLimits limits;
  limits.max_scale = 1;
  world_.functions.limits = limits;
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Provisioned") == "False/ClusterTooSmall"; }, 60));
  EXPECT_THAT(Message("Provisioned"),
              HasSubstr("max-scale-limit in ConfigMap knative-serving/config-autoscaler"));
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
}

TEST_F(ClusterLimitsTest, WhatNoPlatformAllowsStillFails) {
  ClusterLimits limits;
  limits.nodes = std::vector<FreeNode>{{400, 4000, 10}};
  world_.functions.limits = limits;
  Json job = PlannedJob();
  job["spec"]["objective"] = {{"deadlineSeconds", 1}};
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(60));
  EXPECT_EQ(world_.Reason("Failed"), "True/Infeasible");
}

TEST_F(ClusterLimitsTest, WhatCouldNotBeReadIsNamedAndTheJobCompletes) {
  ClusterLimits limits;
  limits.unknown = {"the nodes' capacity: forbidden", "Knative's features: forbidden"};
  world_.functions.limits = limits;
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Reason("Degraded"), "True/LimitsUnknown");
  EXPECT_THAT(Message("Degraded"), HasSubstr("the nodes' capacity: forbidden; Knative's"));
}

TEST_F(ClusterLimitsTest, NothingIsPlannedWhileTheClusterDoesNotAnswer) {
  world_.functions.limits = UnavailableError("connection refused");
  world_.Create(JobWorld::MinimalJob());
  EXPECT_FALSE(world_.RunUntil([&] { return world_.Read().status.plan.has_value(); }, 60));
  EXPECT_EQ(world_.Reason("Failed"), "");
  world_.functions.limits = ClusterLimits{};
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(ClusterLimitsTest, ARunningJobOfAnOlderProcessNeedsNoAnswer) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(5));
  world_.functions.limits = UnavailableError("connection refused");
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(ClusterLimitsTest, WhatTheClusterRefusesIsNotAcceptedUntilItTakesIt) {
  world_.functions.preflight = FailedPreconditionError("must not set nodeSelector; leave it out");
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntil(
      [&] { return world_.Reason("Accepted") == "False/UnsupportedByCluster"; }, 60));
  EXPECT_THAT(Message("Accepted"), HasSubstr("must not set nodeSelector; leave it out"));
  EXPECT_FALSE(world_.RunUntilFinished(60));
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  world_.functions.preflight = OkStatus();
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Accepted"), "True/SpecValid");
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(ClusterLimitsTest, AJobThatRunsIsNotTriedAgain) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(5));
  world_.functions.preflight = FailedPreconditionError("refused now");
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(ClusterLimitsTest, AUsedUpQuotaIsToldAndTriedAgain) {
  world_.functions.quotas = true;
  world_.functions.refuse_groups = ResourceExhaustedError("320 MiB are missing");
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Ready") == "False/QuotaExceeded"; }, 60));
  EXPECT_THAT(Message("Ready"), HasSubstr("320 MiB are missing"));
  world_.functions.refuse_groups = OkStatus();
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

// Whatever the words: what refuses is told apart by the platform, not by the sentence.
TEST_F(ClusterLimitsTest, APlatformWithoutQuotasThatRefusesHasNoCapacity) {
  world_.functions.refuse_groups = ResourceExhaustedError("exceeded quota: said a platform");
  world_.Create(JobWorld::MinimalJob());
  EXPECT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Ready") == "False/WaitingForCapacity"; }, 60));
}

}  // namespace
}  // namespace lambdadnn
