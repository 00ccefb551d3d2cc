// SPDX-License-Identifier: Apache-2.0
// A job whose objective or bounds change: what is decided, and whole lives in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/job_id.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/planning/planning.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/slice_requests.h"
#include "tests/support/job_world.h"
#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Json FixedPlan(int functions, const char* memory) {
  return {{"spec", {{"objective", {{"fixed", {{"functions", functions}, {"memory", memory}}}}}}}};
}

class ReplanTest : public testing::Test {
 protected:
  bool RunUntilIteration(int64_t iteration) {
    return world_.RunUntil([&] { return world_.Read().status.progress.iteration >= iteration; },
                           120);
  }
  // Without a fixed number of layers, so that any number of functions may follow.
  static Json FreeJob() {
    Json job = JobWorld::MinimalJob();
    job["spec"]["aggregation"] = JobWorld::DedicatedServers();
    return job;
  }
  Json Report() {
    for (const std::string& key : world_.Keys()) {
      if (!key.ends_with("/results/report.json")) continue;
      return *ParseJson(AsText(*world_.memory_store.Get(key, std::nullopt)));
    }
    return Json();
  }
  void ExpectNothingLeft() {
    EXPECT_THAT(world_.functions.Live(), IsEmpty());
    EXPECT_THAT(world_.Keys(), Each(HasSubstr("/results/")));
  }

  JobWorld world_;
};

TEST_F(ReplanTest, AChangedObjectiveOfARunningJobStopsAtACheckpointAndGoesOnUnderTheNextRevision) {
  world_.Create(FreeJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch(FixedPlan(4, "768Mi"));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.plan->revision == 2; }, 60));
  const Job job = world_.Read();
  EXPECT_EQ(job.status.plan->functions, 4);
  EXPECT_EQ(job.status.plan->memory_mib, 768);
  EXPECT_EQ(job.status.plan->aggregation.workers(), 4);
  EXPECT_GE(job.status.plan->first_iteration, 30);
  EXPECT_EQ(job.status.plan->first_iteration, job.status.execution.first_iteration);
  EXPECT_EQ(job.status.plan->iterations, 100);
  EXPECT_EQ(job.status.plan->global_batch_size, 64);
  EXPECT_EQ(world_.Reason("Provisioned"), "True/Replanned");
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.functions.iterations_done(), 100);  // nothing twice
  EXPECT_EQ(world_.Read().status.usage.restarts, 0);
  ExpectNothingLeft();
}

TEST_F(ReplanTest, EveryRevisionIsAccountedForInStatusAndReport) {
  world_.Create(FreeJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch(FixedPlan(4, "768Mi"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  const Job job = world_.Read();
  ASSERT_THAT(job.status.plan_history, SizeIs(2));
  EXPECT_EQ(job.status.plan_history[0].first_iteration, 0);
  EXPECT_EQ(job.status.plan_history[0].functions, 2);
  EXPECT_EQ(job.status.plan_history[1].first_iteration, job.status.plan->first_iteration);
  EXPECT_GT(job.status.plan_history[1].at_seconds, 3);
  EXPECT_GT(job.status.plan_history[1].cost_before, 0);
  const Json report = Report();
  ASSERT_EQ(report["plans"].size(), 2u);
  double seconds = report["plans"][0]["atSeconds"].get<double>();
  double cost = 0;
  int64_t iterations = 0;
  for (const Json& plan : report["plans"]) {
    seconds += plan["actual"]["seconds"].get<double>();
    cost += plan["actual"]["cost"].get<double>();
    iterations += plan["iterations"].get<int64_t>();
  }
  EXPECT_NEAR(seconds, report["actual"]["seconds"].get<double>(), 0.01);
  EXPECT_NEAR(cost, report["actual"]["cost"].get<double>(), 1e-9);
  EXPECT_EQ(iterations, 100);
}

TEST_F(ReplanTest, ASuspendedJobResumesWithinItsNewBounds) {
  Json job = FreeJob();
  job["spec"]["objective"] = {{"performanceCostRatio", {{"weight", "0.5"}}}};
  job["spec"]["functions"] = {{"min", 2}, {"max", 2}};
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  world_.RestartController();
  world_.Patch({{"spec",
                 {{"functions", {{"min", 3}, {"max", 3}, {"memory", {{"min", "512Mi"}}}}},
                  {"suspend", false}}}});
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job done = world_.Read();
  EXPECT_EQ(done.status.plan->revision, 2);
  EXPECT_EQ(done.status.plan->functions, 3);
  EXPECT_GE(done.status.plan->memory_mib, 512);
  EXPECT_EQ(world_.functions.iterations_done(), 100);
  ExpectNothingLeft();
}

TEST_F(ReplanTest, BoundsThatLeadToTheSamePlanChangeNothing) {
  world_.Create(FreeJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  world_.Patch({{"spec", {{"functions", {{"max", 4}}}, {"suspend", false}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Reason("Provisioned"), "True/PlanKept");
  const Job job = world_.Read();
  EXPECT_EQ(job.status.plan->revision, 1);
  EXPECT_EQ(job.status.execution.incarnation, 0);
  EXPECT_EQ(world_.functions.iterations_done(), 100);
}

TEST_F(ReplanTest, WritingTheSameObjectiveAgainIsNoChange) {
  world_.Create(FreeJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch(FixedPlan(2, "512Mi"));
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Read().status.plan->revision, 1);
  EXPECT_EQ(world_.functions.started().size(), 3u);
}

TEST_F(ReplanTest, AnObjectiveThatCannotBeMetLeavesThePlanInForce) {
  world_.Create(FreeJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"spec", {{"objective", {{"fixed", nullptr}, {"deadlineSeconds", 4}}}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Degraded") == "True/ReplanInfeasible"; }, 20));
  EXPECT_THAT(FindCondition(world_.Read(), "Degraded")->message, HasSubstr("raise"));
  // A later objective is looked at again.
  world_.Patch(
      {{"spec",
        {{"objective",
          {{"fixed", {{"functions", 4}, {"memory", "768Mi"}}}, {"deadlineSeconds", nullptr}}}}}});
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.plan->revision == 2; }, 60));
  EXPECT_EQ(world_.Reason("Degraded"), "False/Recovered");
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(ReplanTest, BoundsThatNoPlanMeetsFailTheJobAndKeepItsCheckpoint) {
  Json job = FreeJob();
  job["spec"]["objective"] = {{"budget", "1"}};
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(10));
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  world_.Patch({{"spec", {{"functions", {{"min", 100}}}, {"suspend", false}}}});
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Failed"), "True/Infeasible");
  EXPECT_THAT(world_.Keys(), testing::Contains(HasSubstr("manifest.json")));
}

TEST_F(ReplanTest, AControllerThatDiesInTheMiddleOfAReplanGoesOnWithIt) {
  world_.Create(FreeJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch(FixedPlan(4, "768Mi"));
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Provisioned") == "False/Replanning"; }, 20));
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.plan->revision, 2);
  ExpectNothingLeft();
}

TEST_F(ReplanTest, AFunctionLostWhileReplanningCostsAFallBackAndNothingElse) {
  world_.Create(FreeJob());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  world_.Patch(FixedPlan(4, "768Mi"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job job = world_.Read();
  EXPECT_EQ(job.status.plan->revision, 2);
  EXPECT_EQ(job.status.plan->first_iteration, 40);  // the newest checkpoint
  ExpectNothingLeft();
}

TEST_F(ReplanTest, ThreeRevisionsAreALogOfThree) {
  world_.Create(FreeJob());
  ASSERT_TRUE(RunUntilIteration(20));
  world_.Patch(FixedPlan(4, "768Mi"));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.plan->revision == 2; }, 60));
  ASSERT_TRUE(RunUntilIteration(60));
  world_.Patch(FixedPlan(1, "512Mi"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  const Job job = world_.Read();
  ASSERT_THAT(job.status.plan_history, SizeIs(3));
  EXPECT_EQ(job.status.plan_history[2].functions, 1);
  EXPECT_LT(job.status.plan_history[1].first_iteration, job.status.plan_history[2].first_iteration);
}

TEST_F(ReplanTest, MoreEpochsStopAtACheckpointAndGoOnWithMoreIterations) {
  world_.Create(FreeJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"spec", {{"training", {{"epochs", 3}}}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.functions.iterations_done(), 150);
  const JobStatus status = world_.Read().status;
  EXPECT_EQ(status.model_digest, "digest-150");
  EXPECT_EQ(status.progress.epoch, 3);
  ASSERT_THAT(status.plan_history, SizeIs(2));
  EXPECT_EQ(status.plan_history[0].iterations, 100);
  EXPECT_EQ(status.plan_history[1].iterations, 150);
  EXPECT_GE(status.plan_history[1].first_iteration, 30);
  EXPECT_EQ(status.plan_history[1].reason, "spec.training.epochs changed");
  EXPECT_EQ(status.usage.restarts, 0);
  for (const auto& [at, request] : world_.functions.requests()) {
    EXPECT_EQ(request.training.epochs, request.plan.iterations / 50);
    EXPECT_EQ(request.plan.iterations, request.plan.revision == 1 ? 100 : 150);
  }
}

TEST_F(ReplanTest, FewerEpochsEndTheJobEarlier) {
  Json job = FreeJob();
  job["spec"]["training"]["epochs"] = 4;
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"spec", {{"training", {{"epochs", 2}}}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.functions.iterations_done(), 100);
  EXPECT_EQ(world_.Read().status.plan->iterations, 100);
}

TEST_F(ReplanTest, FewerEpochsThanAreDoneEndTheJobWithTheEpochThatItIsIn) {
  Json job = FreeJob();
  job["spec"]["training"]["epochs"] = 4;
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(110));
  world_.Patch({{"spec", {{"training", {{"epochs", 1}}}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.functions.iterations_done(), 150);
  EXPECT_EQ(world_.Read().status.progress.epoch, 3);
}

TEST_F(ReplanTest, FewerEpochsThanAreDoneChangeNothingInTheLastEpoch) {
  world_.Create(FreeJob());
  ASSERT_TRUE(RunUntilIteration(60));
  world_.Patch({{"spec", {{"training", {{"epochs", 1}}}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.plan->revision, 1);
  EXPECT_EQ(world_.functions.started().size(), 3u);
}

TEST_F(ReplanTest, EpochsThatTheObjectiveForbidsLeaveThePlanInForce) {
  Json job = FreeJob();
  job["spec"]["objective"] = {{"deadlineSeconds", 600}};
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"spec", {{"training", {{"epochs", 1000000}}}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Degraded") == "True/ReplanInfeasible"; }, 20));
  EXPECT_THAT(FindCondition(world_.Read(), "Degraded")->message, HasSubstr("for 100 iterations"));
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.functions.iterations_done(), 100);
}

TEST_F(ReplanTest, MoreEpochsOfAFinishedJobChangeNothing) {
  world_.Create(FreeJob());
  ASSERT_TRUE(world_.RunUntilFinished(200));
  world_.Patch({{"spec", {{"training", {{"epochs", 3}}}}}});
  EXPECT_FALSE(world_.RunUntil([&] { return !world_.functions.Live().empty(); }, 60));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.plan->iterations, 100);
}

TEST_F(ReplanTest, CheckpointsAsTheSpecSaysBeginWithTheNextSlices) {
  world_.Create(FreeJob());
  ASSERT_TRUE(RunUntilIteration(30));
  const int64_t before = world_.Read().status.plan->checkpoint_every;
  const size_t slices = world_.functions.requests().size();
  world_.Patch({{"spec", {{"checkpoint", {{"intervalSeconds", 1}, {"keep", 5}}}}}});
  ASSERT_TRUE(RunUntilIteration(50));
  EXPECT_EQ(world_.functions.requests().size(), slices) << "those that run are not disturbed";
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job job = world_.Read();
  EXPECT_EQ(job.status.plan->revision, 1);
  EXPECT_LT(job.status.plan->checkpoint_every, before);
  EXPECT_EQ(job.status.plan->checkpoint_every, CheckpointEveryOf(job.spec, *job.status.plan));
  const auto& requests = world_.functions.requests();
  ASSERT_EQ(requests.size(), 2 * slices);
  for (size_t i = 0; i < requests.size(); ++i) {
    const SliceRequest& request = requests[i].second;
    EXPECT_EQ(request.plan.checkpoint_every,
              i < slices ? before : job.status.plan->checkpoint_every);
    EXPECT_EQ(request.checkpoint_keep, i < slices ? 2 : 5);
  }
}

// --- Pure ---

Job PlannedJob() {
  Job job;
  job.metadata.uid = "uid";
  job.metadata.finalizers = {kCleanupFinalizer};
  job.metadata.annotations[kJobIdAnnotation] = JobIdOf(job);
  job.spec.objective.fixed = Objective::Fixed{2, 512};
  Plan plan;
  plan.revision = 3;
  plan.first_iteration = 60;
  plan.functions = 2;
  plan.aggregation.layers = {1, 2};
  plan.virtual_partitions = 64;
  plan.iterations = 100;
  plan.iterations_per_epoch = 50;
  plan.global_batch_size = 64;
  plan.local_batch_size = 32;
  job.spec.training.epochs = 2;
  job.status.plan = plan;
  job.status.plan_history.resize(3);
  for (int i = 0; i < 3; ++i) {
    job.status.plan_history[static_cast<size_t>(i)].revision = i + 1;
    job.status.plan_history[static_cast<size_t>(i)].first_iteration = 30 * i;
  }
  job.status.execution.planned_for = PlannedInputsOf(job.spec, job.status.execution);
  return job;
}

TEST(PlanLog, OnlyCheckpointsOnTheWayOfTheRevisionsCount) {
  const Job job = PlannedJob();  // 1 from 0, 2 from 30, 3 from 60
  const auto counts = [&](int revision, int64_t iteration) {
    return IsOfThePlans(job, {"p", iteration, revision, 0});
  };
  EXPECT_TRUE(counts(1, 30));
  EXPECT_FALSE(counts(1, 31));  // a function of the first revision that went on by itself
  EXPECT_FALSE(counts(1, 60));
  EXPECT_TRUE(counts(2, 60));
  EXPECT_FALSE(counts(2, 61));
  EXPECT_TRUE(counts(3, 60));
  EXPECT_TRUE(counts(3, 99));
  EXPECT_FALSE(counts(4, 61));
}

TEST(PlanLog, ARevisionThatIsNotInTheLogCameToNothing) {
  Job job = PlannedJob();
  job.status.plan_history.erase(job.status.plan_history.begin() + 1);  // 1 from 0, 3 from 60
  const auto counts = [&](int revision, int64_t iteration) {
    return IsOfThePlans(job, {"p", iteration, revision, 0});
  };
  EXPECT_FALSE(counts(2, 40));
  EXPECT_TRUE(counts(1, 60));
  EXPECT_FALSE(counts(1, 61));
  job.status.plan_history.erase(
      job.status.plan_history.begin());  // 3 from 60: another job's before
  EXPECT_TRUE(counts(2, 60));
  EXPECT_FALSE(counts(2, 61));
}

TEST(PlanLog, AnOlderPlansNewerCheckpointServesAPlanThatHasNone) {
  const Job job = PlannedJob();  // 1 from 0, 2 from 30, 3 from 60
  const auto counts = [&](int revision, int64_t iteration) {
    return IsOfTheEarlierPlans(job, {"p", iteration, revision, 0});
  };
  EXPECT_TRUE(counts(2, 75));
  EXPECT_TRUE(counts(1, 30));
  EXPECT_TRUE(counts(1, 31)) << "revision 2 may have been replaced before it had one, too";
  EXPECT_FALSE(counts(3, 75));
}

// A function that was cut off deleted the checkpoint that revision 3 was to begin with, and left a
// newer one of revision 2.
TEST(HoldPlanFromQuiesce, APlanWhoseFirstCheckpointIsLostHoldsFromAnotherOneUnderAnotherNumber) {
  TestSnapshot snapshot;
  snapshot.job = PlannedJob();
  WriteDecision write;
  write.execution = snapshot.job.status.execution;
  write.execution->first_iteration = 75;
  write.execution->start_checkpoint = CheckpointToJson({"p", 75, 2, 0});
  HoldPlanFromQuiesce(snapshot, &write);
  ASSERT_TRUE(write.plan.has_value());
  EXPECT_EQ(write.plan->revision, 4);
  EXPECT_EQ(write.plan->first_iteration, 75);
  EXPECT_EQ(write.plan->functions, snapshot.job.status.plan->functions);
  ASSERT_THAT(*write.plan_history, SizeIs(3)) << "revision 3 is struck";
  EXPECT_EQ(write.plan_history->at(1).revision, 2);
  EXPECT_EQ(write.plan_history->at(2).revision, 4);
  EXPECT_EQ(write.plan_history->at(2).first_iteration, 75);

  WriteDecision as_planned;
  as_planned.execution = snapshot.job.status.execution;
  as_planned.execution->start_checkpoint = CheckpointToJson({"p", 60, 2, 0});
  HoldPlanFromQuiesce(snapshot, &as_planned);
  EXPECT_FALSE(as_planned.plan.has_value());
}

TEST(LeastMemory, IsAQuarterMoreOnThePlatformsGrid) {
  Platform platform;
  platform.memory = {128, 3008, 64};
  EXPECT_EQ(LeastMemoryMib(platform, 0), 0);
  EXPECT_EQ(LeastMemoryMib(platform, 128), 192);
  EXPECT_EQ(LeastMemoryMib(platform, 512), 640);
  EXPECT_EQ(LeastMemoryMib(platform, 520), 704);  // 650
}

TEST(PlannerInput, SaysWhatTheUserAskedOfAggregation) {
  Job job = PlannedJob();
  job.status.profile.emplace();
  const auto asked = [&] { return PlannerInputOf(job, Platform{}, {}, false).aggregation; };
  EXPECT_EQ(asked().transport, std::nullopt);
  EXPECT_EQ(asked().placement, std::nullopt);
  job.spec.aggregation.transport = TransportKind::kDirect;
  job.spec.aggregation.placement = Placement::kWorkers;
  EXPECT_EQ(asked().transport, TransportKind::kDirect);
  EXPECT_EQ(asked().placement, Placement::kWorkers);
}

TEST(PlannerInput, FunctionsThatDoNotConnectExchangeThroughTheStore) {
  Job job = PlannedJob();
  job.status.profile.emplace();
  job.spec.peer_channel = PeerChannelMode::kNone;
  const AggregationConstraints asked = PlannerInputOf(job, Platform{}, {}, false).aggregation;
  EXPECT_EQ(asked.transport, TransportKind::kObjectStore);
  EXPECT_EQ(asked.placement, std::nullopt);
}

TEST(PlannerInput, AnotherPlanKeepsTheWayOfExchangeThatNobodyAskedFor) {
  Job job = PlannedJob();
  job.status.profile.emplace();
  job.status.plan->aggregation.transport = TransportKind::kDirect;
  job.status.plan->aggregation.placement = Placement::kWorkers;
  const auto asked = [&] { return ReplannerInputOf(job, Platform{}, {}, 0).aggregation; };
  EXPECT_EQ(asked().transport, TransportKind::kDirect);
  EXPECT_EQ(asked().placement, Placement::kWorkers);
  job.spec.aggregation.placement = Placement::kDedicated;
  EXPECT_EQ(asked().placement, Placement::kDedicated);
}

TEST(PlannedInputs, OfWhatWasTooSmallAsWell) {
  Job job = PlannedJob();
  job.status.execution.too_small_server_mib = 256;
  EXPECT_TRUE(PlanIsOutOfDate(job));
}

TEST(PlannedInputs, WithoutEpochsIsOfThoseOfThePlan) {
  Job job = PlannedJob();
  job.status.execution.planned_for->epochs = 0;
  EXPECT_FALSE(PlanIsOutOfDate(job));
  job.spec.training.epochs = 3;
  EXPECT_TRUE(PlanIsOutOfDate(job));
}

TEST(IterationsWanted, AreThoseOfTheEpochsButNeverFewerThanTheEpochUnderWay) {
  Job job = PlannedJob();  // 50 an epoch
  const auto wanted = [&](double epochs, int64_t done) {
    job.spec.training.epochs = epochs;
    return IterationsWanted(job.spec, *job.status.plan, done);
  };
  EXPECT_EQ(wanted(2, 0), 100);
  EXPECT_EQ(wanted(2, 99), 100);
  EXPECT_EQ(wanted(2, 100), 100);
  EXPECT_EQ(wanted(1, 100), 100);
  EXPECT_EQ(wanted(1, 60), 100);
  EXPECT_EQ(wanted(3, 60), 150);
}

TEST(CheckpointEvery, FollowsTheSpecUnlessThePlanPredictsNothing) {
  Job job = PlannedJob();
  job.status.plan->checkpoint_every = 7;
  EXPECT_EQ(CheckpointEveryOf(job.spec, *job.status.plan), 7);
  job.status.plan->predicted[Term::kCompute] = 0.5;
  EXPECT_EQ(CheckpointEveryOf(job.spec, *job.status.plan), 60);
  job.spec.checkpoint.interval_seconds = 5;
  EXPECT_EQ(CheckpointEveryOf(job.spec, *job.status.plan), 10);
}

TEST(PlannedInputs, IsOfObjectiveBoundsAggregationAndEpochsAlone) {
  const Job job = PlannedJob();
  EXPECT_FALSE(PlanIsOutOfDate(job));
  Job other = job;
  other.spec.suspend = true;
  other.spec.backoff_limit = 1;
  other.spec.active_deadline_seconds = 5;
  EXPECT_FALSE(PlanIsOutOfDate(other));
  other = job;
  other.spec.objective.fixed->functions = 3;
  EXPECT_TRUE(PlanIsOutOfDate(other));
  other = job;
  other.spec.functions.max = 3;
  EXPECT_TRUE(PlanIsOutOfDate(other));
  other = job;
  other.spec.aggregation.shards = 2;
  EXPECT_TRUE(PlanIsOutOfDate(other));
  other = job;
  other.spec.training.epochs = 3;
  EXPECT_TRUE(PlanIsOutOfDate(other));
  other = job;
  other.spec.checkpoint = {5, 9, ""};
  EXPECT_FALSE(PlanIsOutOfDate(other));
}

TEST(NextRevision, KeepsTheDataOrderWithinAnEpochAndEvensItOutAtItsBegin) {
  const Job job = PlannedJob();
  Plan planned;
  planned.functions = 3;
  planned.virtual_partitions = 66;
  EXPECT_EQ(NextRevision(job, planned, 0, 0, 70).virtual_partitions, 64);
  EXPECT_EQ(NextRevision(job, planned, 0, 0, 50).virtual_partitions, 66);
  const Plan next = NextRevision(job, planned, 12, 0.5, 70);
  EXPECT_EQ(next.revision, 4);
  EXPECT_EQ(next.first_iteration, 70);
  EXPECT_EQ(next.iterations, 100);
  EXPECT_EQ(next.predicted.seconds, 12);
  EXPECT_EQ(next.predicted.cost, 0.5);
}

TEST(PlanRecords, TheOldestAreDroppedBeyondWhatTheApiHolds) {
  JobStatus status;
  for (int revision = 1; revision <= 70; ++revision) {
    PlanRecord record;
    record.revision = revision;
    status.plan_history = WithRecord(status, record);
  }
  EXPECT_THAT(status.plan_history, SizeIs(64));
  EXPECT_EQ(status.plan_history.front().revision, 7);
  EXPECT_EQ(status.plan_history.back().revision, 70);
}

TestSnapshot SnapshotOf(const Job& job, const ControllerOptions& options) {
  TestSnapshot snapshot;
  snapshot.job = job;
  snapshot.options = &options;
  snapshot.observed.instances_known = true;
  return snapshot;
}

TEST(DecideRun, FunctionsOfAnOlderRevisionAreGivenBackFirst) {
  const ControllerOptions options;
  TestSnapshot snapshot = SnapshotOf(PlannedJob(), options);
  InstanceFact& old = snapshot.observed.instances["f1"];
  old.instance.uid = "f1";
  old.instance.group = WorkersGroupName(2);
  const std::vector<Action> actions = DecideRun(snapshot);
  ASSERT_THAT(actions, SizeIs(1));
  const auto* deletion = std::get_if<DeleteOneGroup>(&actions.front());
  ASSERT_NE(deletion, nullptr);
  EXPECT_EQ(deletion->group, WorkersGroupName(2));
}

}  // namespace
}  // namespace lambdadnn
