// SPDX-License-Identifier: Apache-2.0
// By what the profile of a job is corrected that trained before it was measured.
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
    snapshot_.options = &options_;
    snapshot_.job.spec.training.epochs = 100;
    snapshot_.job.spec.training.global_batch_size = 100;
    JobStatus& status = snapshot_.job.status;
    status.execution.unmeasured_plan = UnmeasuredPlan::kTrains;
    WorkloadProfile& profile = status.profile.emplace();
    profile.training_samples = 1000;
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
    told.phases[Phase::kEvaluate].wall_seconds = evaluation;
    snapshot_.observed.steps_alone.ObserveLine("worker-0", told, evaluation > 0);
  }

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

}  // namespace
}  // namespace lambdadnn
