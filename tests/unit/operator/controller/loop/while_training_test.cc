// SPDX-License-Identifier: Apache-2.0
// Jobs that train while their model is measured (spec.profiling: WhileTraining), in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// 200 iterations of 0.1 s; measured, one function of 1 GiB takes 0.0625 s for each.
class WhileTrainingTest : public JobLifeTest {
 protected:
  WhileTrainingTest() {
    world_.check_dataset = [](const TrainingConfig&, const auto&) {
      return WorkloadFacts{6400, 100, 4, 1000};
    };
    world_.RestartController();
    job_ = JobWorld::MinimalJob();
    job_["spec"].erase("profile");
    job_["spec"].erase("aggregation");
    job_["spec"]["profiling"] = "WhileTraining";
    // More than one function, once it is known what one does.
    job_["spec"]["objective"] = {{"deadlineSeconds", 14}};
  }
  // The plan is one function of this size, measured or not.
  void AllowOneSize() {
    job_["spec"]["objective"] = {{"deadlineSeconds", 100}};
    job_["spec"]["functions"] = {{"max", 2}, {"memory", {{"min", "1Gi"}, {"max", "1Gi"}}}};
  }
  bool RunUntilMeasured() {
    return world_.RunUntil([&] { return world_.Read().status.profile.has_value(); }, 60);
  }
  int Profiled() const {
    int count = 0;
    for (const std::string& invocation : world_.functions.started()) {
      count += invocation.find("profile-0") != std::string::npos ? 1 : 0;
    }
    return count;
  }
  // It has begun: a function measures beside the one that trains.
  bool RunUntilMeasuring() {
    return world_.RunUntil([&] { return Profiled() > 0; }, 60);
  }
  void ExpectComplete() {
    ASSERT_TRUE(world_.RunUntilFinished(300));
    EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
    EXPECT_EQ(world_.functions.iterations_done(), 200);  // nothing twice
    EXPECT_LE(world_.functions.max_running_per_role(), 1);
    ExpectNothingLeft();
  }
  UnmeasuredPlan Unmeasured() { return world_.Read().status.execution.unmeasured_plan; }

  Json job_;
};

TEST_F(WhileTrainingTest, TrainingStartsAtOnceAndGoesOnUnderThePlanThatIsMadeMeanwhile) {
  world_.Create(job_);
  ASSERT_TRUE(RunUntilIteration(1));
  const Job trains = world_.Read();
  EXPECT_EQ(trains.status.phase, "Running");
  EXPECT_FALSE(trains.status.profile.has_value());
  EXPECT_EQ(Profiled(), 0);
  EXPECT_EQ(world_.Reason("Provisioned"), "True/PlanUnmeasured");
  EXPECT_EQ(trains.status.plan->functions, 1);
  EXPECT_EQ(trains.status.plan->memory_mib, 1024);
  EXPECT_EQ(trains.status.plan->predicted, Prediction{});
  ExpectComplete();
  const Job done = world_.Read();
  EXPECT_EQ(done.status.execution.unmeasured_plan, UnmeasuredPlan::kNone);
  ASSERT_GE(done.status.plan_history.size(), 2u);  // iterations take longer than predicted
  EXPECT_EQ(done.status.plan_history[0].predicted_seconds, 0);
  EXPECT_GT(done.status.plan_history[1].functions, 1);
  EXPECT_GT(done.status.plan_history[1].first_iteration, 0);
  EXPECT_EQ(done.status.plan_history[1].reason, "the model is measured");
  EXPECT_GT(done.status.plan_history[1].predicted_seconds, 0);
  EXPECT_TRUE(done.status.execution.planned_for.has_value());
}

// What was trained and measured before the plan is in neither of the figures that are compared.
TEST_F(WhileTrainingTest, TheReportComparesWhatWasPredictedAlone) {
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntilFinished(300));
  const PlanRecord planned = world_.Read().status.plan_history.back();
  const Json report = Report();
  EXPECT_EQ(report["beforePlan"]["seconds"], planned.at_seconds);
  EXPECT_EQ(report["beforePlan"]["cost"], planned.cost_before);
  EXPECT_EQ(report["beforePlan"]["iterations"], planned.first_iteration);
  EXPECT_FALSE(report["plans"][0].contains("predicted"));
  EXPECT_EQ(report["plan"]["predicted"]["iterations"], 200 - planned.first_iteration);
}

TEST_F(WhileTrainingTest, AFirstPlanThatIsTheBestStaysAndIsPredictedFromThenOn) {
  AllowOneSize();
  world_.Create(job_);
  ASSERT_TRUE(RunUntilMeasured());
  ASSERT_TRUE(world_.RunUntil([&] { return Unmeasured() == UnmeasuredPlan::kNone; }, 10));
  EXPECT_EQ(world_.Reason("Provisioned"), "True/PlanKept");
  const Job job = world_.Read();
  EXPECT_EQ(job.status.plan->revision, 1);
  ASSERT_THAT(job.status.plan_history, SizeIs(1));
  const PlanRecord& record = job.status.plan_history[0];
  ASSERT_TRUE(record.predicted_from.has_value());
  EXPECT_GT(record.predicted_from->iteration, 0);
  EXPECT_GT(record.predicted_from->seconds, 0);
  EXPECT_EQ(job.status.plan->predicted.iterations, 200 - record.predicted_from->iteration);
  // By what its iterations took while nothing was measured beside them.
  EXPECT_NEAR(job.status.plan->predicted.IterationSeconds(), 0.1, 0.005);
  EXPECT_NEAR(job.status.execution.corrections.compute, 0.1 / 0.0625, 0.1);
  ExpectComplete();
  EXPECT_EQ(world_.Read().status.usage.restarts, 0);
  const Json report = Report();
  EXPECT_EQ(report["beforePlan"]["seconds"], record.predicted_from->seconds);
  EXPECT_EQ(report["beforePlan"]["iterations"], record.predicted_from->iteration);
  EXPECT_EQ(report["plans"][0]["predictedFrom"]["cost"], record.predicted_from->cost);
}

// Measured beside a busy neighbour it takes 62 s, with two functions 31; it really takes 15.
TEST_F(WhileTrainingTest, AMeasurementThatTheTrainingRefutesEndsNoJob) {
  world_.functions.set_iteration_seconds(0.015);
  AllowOneSize();
  job_["spec"]["training"]["epochs"] = 10;
  job_["spec"]["objective"] = {{"deadlineSeconds", 25}};
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntilFinished(300));
  ASSERT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Json report = Report();
  EXPECT_EQ(world_.Read().status.plan->revision, 1);
  EXPECT_NEAR(report["error"]["seconds"].get<double>(), 0, 0.05);
}

// More functions are faster for as much money, which no deadline needs.
TEST_F(WhileTrainingTest, AnotherPlanThatIsBetterTakesOver) {
  job_["spec"]["objective"] = {{"performanceCostRatio", {{"weight", "0.2"}}}};
  world_.Create(job_);
  ExpectComplete();
  EXPECT_THAT(world_.Read().status.plan_history, SizeIs(2));
}

TEST_F(WhileTrainingTest, AnUncertainMeasurementReplacesNoPlanThatIsInTime) {
  world_.functions.measured_second_half = 2;
  job_["spec"]["objective"] = {{"performanceCostRatio", {{"weight", "0.2"}}}};
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return Unmeasured() == UnmeasuredPlan::kNone; }, 60));
  EXPECT_EQ(world_.Reason("Provisioned"), "True/PlanKept");
  ExpectComplete();
  EXPECT_THAT(world_.Read().status.plan_history, SizeIs(1));
}

TEST_F(WhileTrainingTest, AnUncertainMeasurementReplacesAPlanThatIsLate) {
  world_.functions.measured_second_half = 2;
  world_.Create(job_);
  ExpectComplete();
  EXPECT_GE(world_.Read().status.plan_history.size(), 2u);
}

// Their iterations are told by nobody: the plan is made without.
TEST_F(WhileTrainingTest, StepsThatAreNotToldAreNotAwaitedForLong) {
  world_.functions.tells_phases = false;
  AllowOneSize();
  world_.Create(job_);
  ASSERT_TRUE(RunUntilMeasured());
  const Instant measured_at = world_.time.clock.Now();
  ASSERT_TRUE(world_.RunUntil([&] { return Unmeasured() == UnmeasuredPlan::kNone; }, 10));
  EXPECT_NEAR(ToSeconds(world_.time.clock.Now() - measured_at), 5, 1.1);
  EXPECT_NEAR(world_.Read().status.plan->predicted.IterationSeconds(), 0.0625, 0.005);
  ExpectComplete();
}

TEST_F(WhileTrainingTest, AJobThatEndsBeforeItIsMeasuredHasNothingPredicted) {
  job_["spec"]["training"]["epochs"] = 1;
  world_.Create(job_);
  ASSERT_TRUE(RunUntilMeasuring());
  // It measures for ever.
  world_.functions.Silence(world_.functions.InstanceOf("profile-0"));
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_FALSE(world_.Read().status.profile.has_value());
  const Json report = Report();
  EXPECT_FALSE(report.contains("predicted"));
  EXPECT_FALSE(report.contains("error"));
  EXPECT_FALSE(report["plan"].contains("predicted"));
  ExpectNothingLeft();
}

TEST_F(WhileTrainingTest, WhatCannotBeMeasuredDoesNotEndTheTraining) {
  world_.functions.FailNext("profile-0", FailedPreconditionError("no LibTorch"), true);
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return Unmeasured() == UnmeasuredPlan::kKept; }, 60));
  EXPECT_EQ(world_.Reason("Degraded"), "True/NotMeasured");
  EXPECT_THAT(FindCondition(world_.Read(), "Degraded")->message, HasSubstr("no LibTorch"));
  ASSERT_TRUE(RunUntilIteration(150));
  EXPECT_THAT(world_.functions.Live(), SizeIs(1));  // those that measured are released
  EXPECT_EQ(world_.Reason("Degraded"), "True/NotMeasured");
  ExpectComplete();
  EXPECT_EQ(world_.Read().status.plan->revision, 1);
}

TEST_F(WhileTrainingTest, WhereTheFirstPlanRunsOutOfMemoryTheJobIsProfiledFirst) {
  job_["spec"]["backoffLimit"] = 0;
  world_.Create(job_);
  ASSERT_TRUE(RunUntilIteration(5));
  world_.functions.Kill(world_.functions.InstanceOf("worker-0"), FunctionEnd::kOutOfMemory);
  ASSERT_TRUE(world_.RunUntil([&] { return Unmeasured() == UnmeasuredPlan::kLeft; }, 20));
  EXPECT_EQ(world_.Reason("Degraded"), "True/OOMKilled");
  ASSERT_TRUE(RunUntilMeasured());
  EXPECT_EQ(world_.functions.InstanceOf("worker-0"), "");
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.plan->revision, 2);
  ExpectNothingLeft();
}

TEST_F(WhileTrainingTest, WithoutFunctionsThatMeasureBesideItTheJobStopsAndIsProfiledFirst) {
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.functions.InstanceOf("worker-0") != ""; }, 20));
  world_.functions.refuse_groups = ResourceExhaustedError("others have taken it");
  ASSERT_TRUE(world_.RunUntil([&] { return Unmeasured() == UnmeasuredPlan::kLeft; }, 20));
  EXPECT_EQ(world_.Reason("Degraded"), "True/ProfilingFirst");
  ASSERT_TRUE(world_.RunUntil([&] { return world_.functions.Live().empty(); }, 20));
  world_.functions.refuse_groups = OkStatus();
  ExpectComplete();
  EXPECT_GE(world_.Read().status.plan->revision, 2);
}

TEST_F(WhileTrainingTest, WhereAllJobsShareLessThanBothNeedTheJobIsProfiledFirst) {
  world_.functions.set_capacity_mib(2 * 1024);
  world_.Create(job_);
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Provisioned") == "False/ProfilingFirst"; }, 20));
  EXPECT_THAT(FindCondition(world_.Read(), "Provisioned")->message,
              HasSubstr("all jobs share 2048 MiB"));
}

TEST_F(WhileTrainingTest, ALostWorkerGoesOnAtItsCheckpointAndTheMeasurementBeginsAnew) {
  world_.Create(job_);
  ASSERT_TRUE(RunUntilMeasuring());
  world_.functions.Kill(world_.functions.InstanceOf("worker-0"));
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_TRUE(world_.Read().status.profile.has_value());
  EXPECT_LE(world_.functions.max_running_per_role(), 1);
  ExpectNothingLeft();
}

TEST_F(WhileTrainingTest, AFunctionThatMeasuredAndIsLostIsReplaced) {
  world_.Create(job_);
  ASSERT_TRUE(RunUntilMeasuring());
  world_.functions.Kill(world_.functions.InstanceOf("profile-0"));
  ExpectComplete();
  EXPECT_EQ(world_.Read().status.usage.restarts, 0);
  EXPECT_TRUE(world_.Read().status.profile.has_value());
}

TEST_F(WhileTrainingTest, ASuspendedJobReleasesAllAndIsMeasuredOnceItRunsAgain) {
  world_.Create(job_);
  ASSERT_TRUE(RunUntilMeasuring());
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  world_.Patch({{"spec", {{"suspend", false}}}});
  ExpectComplete();
  EXPECT_TRUE(world_.Read().status.profile.has_value());
}

TEST_F(WhileTrainingTest, ADeletedJobLeavesNothing) {
  world_.Create(job_);
  ASSERT_TRUE(RunUntilMeasuring());
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 120));
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  EXPECT_THAT(world_.Keys(), IsEmpty());
}

TEST_F(WhileTrainingTest, ANewControllerGoesOnWithWhatTrainsAndWithWhatMeasures) {
  world_.Create(job_);
  ASSERT_TRUE(RunUntilMeasuring());
  world_.RestartController();
  ExpectComplete();
  EXPECT_EQ(world_.Read().status.usage.restarts, 0);
  EXPECT_GE(world_.Read().status.plan->revision, 2);
}

TEST_F(WhileTrainingTest, AnObjectiveThatNoPlanMeetsFailsTheJobOnceItIsMeasured) {
  job_["spec"]["objective"] = {{"budget", "0.000000001"}};
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Failed"), "True/Infeasible");
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
}

TEST_F(WhileTrainingTest, WhereItCannotBeTheJobIsProfiledFirstAndSaysWhy) {
  job_["spec"]["aggregation"] = {{"shards", 1}};
  job_["spec"]["objective"] = {{"deadlineSeconds", 100}};
  world_.Create(job_);
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Provisioned") == "False/ProfilingFirst"; }, 20));
  EXPECT_THAT(FindCondition(world_.Read(), "Provisioned")->message,
              HasSubstr("spec.aggregation says"));
  ASSERT_TRUE(RunUntilMeasured());
  EXPECT_EQ(world_.functions.InstanceOf("worker-0"), "");
  ExpectComplete();
  EXPECT_EQ(world_.Read().status.plan->revision, 1);
}

TEST_F(WhileTrainingTest, AsManyFunctionsTrainAtOnceAsTheJobHasAtLeast) {
  job_["spec"]["functions"] = {{"min", 2}};
  world_.Create(job_);
  ASSERT_TRUE(RunUntilIteration(1));
  EXPECT_EQ(world_.Reason("Provisioned"), "True/PlanUnmeasured");
  EXPECT_EQ(world_.Read().status.plan->functions, 2);
  EXPECT_EQ(world_.Read().status.plan->memory_mib, 512);
  ExpectComplete();
  EXPECT_GE(world_.Read().status.plan_history.back().functions, 2);
}

// Both kinds of functions have capacity before either is asked for.
TEST_F(WhileTrainingTest, TheJobHoldsCapacityForBothWhileItIsMeasured) {
  world_.functions.set_capacity_mib(5 * 1024);
  world_.Create(job_);
  ASSERT_TRUE(RunUntilMeasuring());
  EXPECT_EQ(world_.Reason("Provisioned"), "True/PlanUnmeasured");
  EXPECT_THAT(world_.functions.Live(), SizeIs(4));  // one fewer than would measure alone
  ExpectComplete();
}

}  // namespace
}  // namespace lambdadnn
