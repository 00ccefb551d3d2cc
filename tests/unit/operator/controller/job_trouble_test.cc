// SPDX-License-Identifier: Apache-2.0
// Jobs that stand still, whose ends nobody saw, or that are to be left alone.
#include "operator/api/pause.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class JobTroubleTest : public JobLifeTest {};

TEST_F(JobTroubleTest, ARoundThatStandsStillFallsBack) {
  world_.functions.stuck_at = 50;
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  EXPECT_FALSE(world_.RunUntil([&] { return world_.Read().status.execution.incarnation > 0; }, 55));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Degraded") == "True/Stalled"; }, 200));
  EXPECT_THAT(FindCondition(world_.Read(), "Degraded")->message,
              HasSubstr("no iteration ended for "));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.incarnation, 1);
  ExpectNothingLeft();
}

TEST_F(JobTroubleTest, ARoundThatAlwaysStandsStillFailsTheJob) {
  world_.functions.stuck_at = 50;
  world_.functions.stuck_incarnations = 100;
  Json job = JobWorld::MinimalJob();
  job["spec"]["backoffLimit"] = 1;
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(600));
  EXPECT_EQ(world_.Reason("Failed"), "True/BackoffLimitExceeded");
  EXPECT_THAT(FindCondition(world_.Read(), "Failed")->message,
              HasSubstr("no iteration ended for "));
}

TEST_F(JobTroubleTest, SlicesThatLeftNoCheckpointFallBack) {
  Json job = JobWorld::MinimalJob();
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.lose_checkpoint = true;
  world_.Patch({{"spec", {{"suspend", true}}}});
  world_.RunUntil([&] { return !world_.functions.lose_checkpoint; }, 60);
  world_.Patch({{"spec", {{"suspend", false}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_GT(world_.Read().status.execution.incarnation, 0);
}

TEST_F(JobTroubleTest, AFunctionThatCrashedWhileNobodyLookedFallsBack) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.functions.Kill(world_.functions.InstanceOf("worker-1"), "OOMKilled");
  world_.RestartController();  // of the slice it never hears
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  ExpectNothingLeft();
}

TEST_F(JobTroubleTest, APausedJobIsLeftAloneUntilItIsNotPaused) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"metadata", {{"annotations", {{kPausedAnnotation, "true"}}}}}});
  const std::string version = world_.Read().metadata.resource_version;
  const size_t live = world_.functions.Live().size();
  world_.RunUntil([] { return false; }, 300);  // several slices long
  EXPECT_EQ(world_.Read().metadata.resource_version, version) << "something was written";
  EXPECT_THAT(world_.functions.Live(), SizeIs(live));
  EXPECT_EQ(world_.Reason("SuccessCriteriaMet"), "") << "it was decided upon";
  world_.RestartController();
  world_.RunUntil([] { return false; }, 60);
  EXPECT_EQ(world_.Read().metadata.resource_version, version);

  world_.Patch({{"metadata", {{"annotations", {{kPausedAnnotation, nullptr}}}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  ExpectNothingLeft();
}

TEST_F(JobTroubleTest, ADeletionEndsAPause) {
  Json job = JobWorld::MinimalJob();
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"metadata", {{"annotations", {{kPausedAnnotation, "true"}}}}}});
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  ExpectNothingLeft();
}

TEST_F(JobTroubleTest, AJobOfAnotherControllerIsNeverTouched) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["managedBy"] = "example.com/other";
  job["metadata"]["finalizers"] = {"example.com/theirs"};
  world_.Create(job);
  const std::string version = world_.Read().metadata.resource_version;
  world_.RunUntil([] { return false; }, 60);
  EXPECT_EQ(world_.Read().metadata.resource_version, version);
  EXPECT_THAT(world_.functions.started(), IsEmpty());
}

}  // namespace
}  // namespace lambdadnn
