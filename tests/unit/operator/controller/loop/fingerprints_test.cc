// SPDX-License-Identifier: Apache-2.0
// What the plan pins of the workers' numerics, and workers that differ.
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class FingerprintsTest : public JobLifeTest {
 protected:
  void CreateAndRunUntil(int64_t iteration) {
    world_.Create(JobWorld::MinimalJob());
    ASSERT_TRUE(RunUntilIteration(iteration));
  }
  NumericsFingerprint Pinned() {
    const Plan plan = *world_.Read().status.plan;
    return {plan.isa, plan.libtorch};
  }
  bool AwaitDifference() {
    return world_.RunUntil([&] { return world_.Reason("Degraded") == "True/NumericsDiffer"; }, 60);
  }
  std::string Degraded() { return FindCondition(world_.Read(), "Degraded")->message; }
  int Questions() const {
    int questions = 0;
    for (const auto& [uid, count] : world_.functions.fingerprint_questions()) questions += count;
    return questions;
  }

  const NumericsFingerprint avx2_ = {"avx2", "1.0, fake"};
  const NumericsFingerprint avx512_ = {"avx512", "1.0, fake"};
};

TEST_F(FingerprintsTest, ThePlanPinsWhatItsWorkersSayBeforeAnySliceStarts) {
  CreateAndRunUntil(10);
  EXPECT_EQ(Pinned(), avx2_);
  for (const auto& [when, request] : world_.functions.requests()) {
    EXPECT_EQ(request.plan.isa, "avx2") << request.invocation;
    EXPECT_EQ(request.plan.libtorch, "1.0, fake") << request.invocation;
  }
  // Each worker once, and no server.
  EXPECT_EQ(Questions(), 2);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(Report()["plan"]["isa"], "avx2");
  EXPECT_EQ(Report()["plan"]["libtorch"], "1.0, fake");
}

TEST_F(FingerprintsTest, PinningRidesOnTheWriteThatBinds) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntil([&] { return Questions() == 2; }, 20));
  EXPECT_EQ(Pinned(), NumericsFingerprint{});
  EXPECT_THAT(world_.Read().status.execution.functions, IsEmpty());
  const auto bound = [&] { return !world_.Read().status.execution.functions.empty(); };
  ASSERT_TRUE(world_.RunUntil(bound, 20));
  EXPECT_EQ(Pinned(), avx2_);
}

TEST_F(FingerprintsTest, WhoWasBoundIsNotAskedAgainByANewController) {
  world_.options.platform.function_timeout_seconds = 5;
  world_.RestartController();
  CreateAndRunUntil(20);
  EXPECT_EQ(Questions(), 2);
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_GE(world_.Read().status.usage.slices, 9);
  EXPECT_EQ(Questions(), 2);
}

TEST_F(FingerprintsTest, OfFunctionsThatSayNothingNothingIsPinnedOrCompared) {
  world_.functions.fingerprint = {};
  CreateAndRunUntil(20);
  EXPECT_EQ(Pinned(), NumericsFingerprint{});
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(FingerprintsTest, AnOlderFunctionBesideOthersIsNotCompared) {
  world_.functions.fingerprint_of["f0000"] = {};
  CreateAndRunUntil(20);
  EXPECT_EQ(Pinned(), avx2_);
}

TEST_F(FingerprintsTest, APlanWithoutAPinIsPinnedWhenItIsBoundNext) {
  world_.options.platform.function_timeout_seconds = 5;
  world_.RestartController();
  world_.functions.fingerprint = {};
  CreateAndRunUntil(20);
  world_.functions.fingerprint = avx2_;
  // A worker's alone would be replaced in the round.
  world_.functions.Kill(world_.functions.InstanceOf("worker-0"));
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.execution.incarnation == 1; }, 20));
  ASSERT_TRUE(world_.RunUntil([&] { return Pinned() == avx2_; }, 60));
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(FingerprintsTest, WorkersThatDifferAreGivenBackAndTriedAgain) {
  world_.functions.fingerprint_of["f0001"] = avx512_;
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(AwaitDifference());
  EXPECT_THAT(Degraded(), AllOf(HasSubstr("worker-1 computes with avx512 and LibTorch 1.0, fake"),
                                HasSubstr("others with avx2"), HasSubstr("nodeSelector")));
  EXPECT_EQ(Pinned(), NumericsFingerprint{});
  EXPECT_THAT(world_.functions.started(), IsEmpty());
  // The next ones are of one kind.
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Reason("Degraded"), "False/Recovered");
  ExpectNothingLeft();
}

TEST_F(FingerprintsTest, OtherWorkersThanThePlanIsPinnedToAreTriedEverMoreSeldom) {
  CreateAndRunUntil(30);
  world_.functions.fingerprint = avx512_;
  world_.functions.Kill(world_.functions.InstanceOf("worker-0"));
  ASSERT_TRUE(AwaitDifference());
  EXPECT_THAT(Degraded(),
              AllOf(HasSubstr("computes with avx512"), HasSubstr("the plan is pinned to avx2"),
                    HasSubstr("spec.objective")));
  const int before = Questions();
  world_.RunUntil([] { return false; }, 600);
  EXPECT_EQ(world_.Reason("Degraded"), "True/NumericsDiffer");
  EXPECT_EQ(Pinned(), avx2_);
  // Two workers an attempt, a minute apart in the end.
  EXPECT_GT(Questions() - before, 2 * 8);
  EXPECT_LT(Questions() - before, 2 * 24);
  world_.functions.fingerprint = avx2_;
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Reason("Degraded"), "False/Recovered");
  EXPECT_EQ(world_.Read().status.execution.failures, 0);
  ExpectNothingLeft();
}

TEST_F(FingerprintsTest, ASuspendedJobDoesNotGoOnWithAnotherLibTorch) {
  CreateAndRunUntil(30);
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  world_.functions.fingerprint = {"avx2", "2.0, fake"};
  world_.RestartController();
  world_.Patch({{"spec", {{"suspend", false}}}});
  ASSERT_TRUE(AwaitDifference());
  EXPECT_THAT(Degraded(), AllOf(HasSubstr("LibTorch 2.0, fake"), HasSubstr("LibTorch 1.0, fake")));
}

TEST_F(FingerprintsTest, AnotherPlanIsPinnedAnew) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["aggregation"] = JobWorld::DedicatedServers();
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(30));
  world_.functions.fingerprint = avx512_;
  world_.Patch({{"spec", {{"objective", {{"fixed", {{"functions", 4}, {"memory", "768Mi"}}}}}}}});
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.plan->revision, 2);
  EXPECT_EQ(Pinned(), avx512_);
}

TEST_F(FingerprintsTest, AWorkerThatNeverAnswersIsReplaced) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.functions.Live().empty(); }, 10));
  world_.functions.Silence("f0001");
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Ready") == "False/FunctionUnreachable"; }, 20));
  ASSERT_TRUE(RunUntilIteration(10));
  EXPECT_EQ(world_.Reason("Ready"), "True/FunctionsReady");
  EXPECT_THAT(world_.functions.Live(), testing::Not(testing::Contains("f0001")));
  EXPECT_GE(world_.functions.fingerprint_questions().at("f0001"), 15);
  EXPECT_LE(world_.functions.fingerprint_questions().at("f0001"), 31);
  EXPECT_EQ(world_.functions.fingerprint_questions().at("f0000"), 1);
}

}  // namespace
}  // namespace lambdadnn
