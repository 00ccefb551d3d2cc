// SPDX-License-Identifier: Apache-2.0
// By what the profile of a job is corrected that trained before it was measured, and what is
// predicted of its plan.
#include "operator/controller/decide/alternative_plan.h"

#include <gtest/gtest.h>

#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

constexpr double kMemoryMib = 1000;

// One function; measured, a step of 100 samples takes 0.1 s and an evaluation of 500 0.25 s.
class CorrectionsOfTest : public ::testing::Test {
 protected:
  CorrectionsOfTest() {
    options_.platform.prices.gib_second = 1e-5;
    snapshot_.options = &options_;
    snapshot_.job.spec.training.epochs = 100;
    snapshot_.job.spec.training.global_batch_size = 100;
    JobStatus& status = snapshot_.job.status;
    status.execution.unmeasured_plan = UnmeasuredPlan::kTrains;
    WorkloadProfile& profile = status.profile.emplace();
    profile.training_samples = 1000;
    profile.cold_start_seconds = 3;
    profile.store_bytes_per_second = 1e8;
    profile.model_bytes = 4e6;
    profile.training_rate = {.slope = 1, .intercept = 0};
    profile.evaluation_samples = 500;
    profile.evaluation_rate = {.slope = 2, .intercept = 0};
    Plan& plan = status.plan.emplace();
    plan.functions = 1;
    plan.server_memory_mib = 256;
    plan.global_batch_size = 100;
    plan.memory_mib = kMemoryMib;
    plan.iterations = 1000;
    plan.iterations_per_epoch = 10;
    snapshot_.observed.steps_alone.ObserveMeasuring(false, Instant());
    Tell(10, 0, 0);
  }
  // After so many iterations the worker has spent so much.
  void Tell(int64_t iteration, double compute, double evaluation) {
    ToldPhases told{iteration, {}};
    told.phases[Phase::kCompute].wall_seconds = compute;
    told.phases[Phase::kWait].wall_seconds = waited_;
    told.phases[Phase::kEvaluate].wall_seconds = evaluation;
    snapshot_.observed.steps_alone.ObserveLine("worker-0", told, evaluation > 0);
  }

  double waited_ = 0;
  ControllerOptions options_;
  TestSnapshot snapshot_;
};

TEST_F(CorrectionsOfTest, WithoutIterationsItIsAsItWas) {
  EXPECT_EQ(CorrectionsOf(snapshot_), TimeFactors{});
}

TEST_F(CorrectionsOfTest, StepsThatTakeHalfAsLongAreHalfAsLongAndEvaluationsWithThem) {
  Tell(50, 40 * 0.05, 0);
  const TimeFactors corrections = CorrectionsOf(snapshot_);
  EXPECT_NEAR(corrections.compute, 0.5, 0.02);
  EXPECT_EQ(corrections.evaluation, 1);
}

TEST_F(CorrectionsOfTest, EvaluationsThatWereSeenTakeWhatTheyTook) {
  Tell(50, 40 * 0.05, 0.75);
  const TimeFactors corrections = CorrectionsOf(snapshot_);
  EXPECT_NEAR(corrections.compute, 0.5, 0.02);
  EXPECT_NEAR(corrections.compute * corrections.evaluation, 3, 1e-9);
}

TEST_F(CorrectionsOfTest, EvaluationsThatTheProfileKnowsNothingOfHaveNoFactor) {
  snapshot_.job.status.profile->evaluation_samples = 0;
  Tell(50, 40 * 0.05, 0.75);
  EXPECT_EQ(CorrectionsOf(snapshot_).evaluation, 1);
}

TEST_F(CorrectionsOfTest, OnlyFunctionsThatExchangeTellOfExchanges) {
  waited_ = 40;
  Tell(50, 40 * 0.1, 0);
  EXPECT_NEAR(CorrectionsOf(snapshot_).exchange, 1, 0.2);
  snapshot_.job.status.plan->functions = 2;
  snapshot_.job.status.plan->aggregation.layers = {1, 2};
  EXPECT_GT(CorrectionsOf(snapshot_).exchange, 2);
}

// Term by term: what the model would make of such a profile is not asked for.
TEST_F(CorrectionsOfTest, ThePlanInForceIsPredictedByWhatTheRunHasShown) {
  const Prediction measured = PredictByRun(snapshot_, 100, {}).value();
  const Prediction shown = PredictByRun(snapshot_, 100, {2, 3, 4, 5}).value();
  const auto ratio = [&](Term term) { return shown[term] / measured[term]; };
  EXPECT_DOUBLE_EQ(ratio(Term::kCompute), 2);
  EXPECT_DOUBLE_EQ(ratio(Term::kCommunication), 3);
  EXPECT_DOUBLE_EQ(ratio(Term::kColdStart), 4);
  EXPECT_DOUBLE_EQ(ratio(Term::kEvaluation), 2 * 5);
  EXPECT_EQ(shown.iterations, 900);
  EXPECT_DOUBLE_EQ(shown.seconds, shown.TotalSeconds(900));
  EXPECT_NEAR(shown.cost / measured.cost, shown.seconds / measured.seconds, 1e-9);
  EXPECT_GT(shown.cost, measured.cost);
  // The plan was made with corrections: they are in what was measured of it.
  snapshot_.job.status.execution.corrections = {2, 3, 4, 5};
  const Prediction corrected = PredictByRun(snapshot_, 100, {2, 3, 4, 5}).value();
  EXPECT_DOUBLE_EQ(corrected[Term::kCompute], shown[Term::kCompute]);
}

}  // namespace
}  // namespace lambdadnn
