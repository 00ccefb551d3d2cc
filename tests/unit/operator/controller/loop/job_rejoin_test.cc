// SPDX-License-Identifier: Apache-2.0
// A worker that the platform takes away: another function takes its place in the round.
#include <algorithm>

#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

class JobRejoinTest : public JobLifeTest {
 protected:
  bool FallsBackWithin(double seconds) {
    return world_.RunUntil([&] { return world_.Read().status.execution.incarnation > 0; }, seconds);
  }
};

TEST_F(JobRejoinTest, ALostWorkerIsReplacedWhileTheOthersWait) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  const auto slices = world_.functions.requests().size();
  world_.functions.Kill(world_.functions.InstanceOf("worker-1"));
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job job = world_.Read();
  EXPECT_EQ(job.status.execution.incarnation, 0);
  EXPECT_EQ(job.status.execution.failures, 0);
  EXPECT_EQ(job.status.usage.restarts, 1);
  ASSERT_EQ(world_.functions.requests().size(), slices + 1) << "no other slice was disturbed";
  const SliceRequest& again = world_.functions.requests().back().second;
  EXPECT_EQ(again.roles.front().role.Name(), "worker-1");
  EXPECT_EQ(again.roles.front().attempt, 2);
  EXPECT_EQ(world_.functions.iterations_done(), 100) << "none was done twice";
  ExpectNothingLeft();
}

TEST_F(JobRejoinTest, AWorkerThatIsNotReplacedInTimeLetsTheRoundFallBack) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.start_nothing = true;
  world_.functions.Kill(world_.functions.InstanceOf("worker-1"));
  EXPECT_FALSE(world_.RunUntil([&] { return world_.Read().status.execution.incarnation > 0; },
                               world_.options.rejoin_seconds - 1));
  EXPECT_TRUE(world_.RunUntil([&] { return world_.Read().status.execution.incarnation > 0; }, 5));
  EXPECT_EQ(world_.Read().status.execution.failures, 0);
  world_.functions.start_nothing = false;
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(JobRejoinTest, AllWorkersMayBeLostAtOnce) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  for (const char* role : {"worker-0", "worker-1"}) {
    world_.functions.Kill(world_.functions.InstanceOf(role));
  }
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.incarnation, 0);
  EXPECT_EQ(world_.functions.iterations_done(), 100);
}

TEST_F(JobRejoinTest, ALostWorkerIsLostAgain) {
  world_.Create(JobWorld::MinimalJob());
  for (int kill = 1; kill <= 3; ++kill) {
    ASSERT_TRUE(RunUntilIteration(20 * kill));
    world_.functions.Kill(world_.functions.InstanceOf("worker-1"));
    ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.usage.restarts == kill; }, 60));
    ASSERT_TRUE(
        world_.RunUntil([&] { return !world_.functions.InstanceOf("worker-1").empty(); }, 60));
  }
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.incarnation, 0);
  EXPECT_EQ(world_.functions.requests().back().second.roles.front().attempt, 4);
}

TEST_F(JobRejoinTest, AnotherControllerGoesOnWithTheReplacement) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.Kill(world_.functions.InstanceOf("worker-1"));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.usage.restarts == 1; }, 60));
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.incarnation, 0);
  EXPECT_EQ(world_.functions.iterations_done(), 100);
}

TEST_F(JobRejoinTest, WithALostServerAllFallBack) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  for (const char* role : {"worker-0", "server-0"}) {
    world_.functions.Kill(world_.functions.InstanceOf(role));
  }
  EXPECT_TRUE(FallsBackWithin(20));
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(JobRejoinTest, AWorkerThatEndsByItselfCountsAndFallsBack) {
  for (const FunctionEnd end : {FunctionEnd::kByItself, FunctionEnd::kOutOfMemory}) {
    world_.Create(JobWorld::MinimalJob());
    ASSERT_TRUE(RunUntilIteration(50));
    world_.functions.Kill(world_.functions.InstanceOf("worker-1"), end);
    EXPECT_TRUE(FallsBackWithin(20)) << static_cast<int>(end);
    EXPECT_EQ(world_.Read().status.execution.failures, 1);
    world_.Delete();
    ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  }
}

TEST_F(JobRejoinTest, AReplacementThatEndsBeforeItIsReadyLetsTheRoundFallBack) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  const std::vector<std::string> before = world_.functions.Live();
  world_.functions.start_nothing = true;
  world_.functions.Kill(world_.functions.InstanceOf("worker-1"));
  std::string another;
  ASSERT_TRUE(world_.RunUntil(
      [&] {
        for (const std::string& uid : world_.functions.Live()) {
          if (std::find(before.begin(), before.end(), uid) == before.end()) another = uid;
        }
        return !another.empty();
      },
      30));
  world_.functions.Kill(another, FunctionEnd::kByItself);
  world_.functions.start_nothing = false;
  EXPECT_TRUE(FallsBackWithin(10));
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(JobRejoinTest, IsToldWhileItLasts) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.Kill(world_.functions.InstanceOf("worker-1"));
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Degraded") == "True/FunctionLost"; }, 60));
  EXPECT_THAT(FindCondition(world_.Read(), "Degraded")->message,
              HasSubstr("another function goes on where it was, the others wait"));
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Degraded"), "False/Recovered");
}

}  // namespace
}  // namespace lambdadnn
