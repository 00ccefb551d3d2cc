// SPDX-License-Identifier: Apache-2.0
// What is left of a job's objective when it is planned.
#include "operator/controller/planning/planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/planner/wording.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCreated = "2026-01-31T12:00:00Z";

WallTime At(const std::string& text) {
  WallTime time;
  EXPECT_TRUE(ParseRfc3339(text, &time)) << text;
  return time;
}

Job CreatedJob() {
  Job job;
  job.metadata.creation_timestamp = kCreated;
  job.spec.training.global_batch_size = 100;
  job.status.profile.emplace();
  job.status.profile->training_samples = 1000;
  job.status.profile->model_bytes = 4e6;
  job.status.profile->training_rate = {.slope = 1, .intercept = 0};
  return job;
}

double DeadlineLeft(const Job& job, const JobSpent& spent) {
  return *PlannerInputOf(job, Platform{}, spent, false).objective.deadline_seconds;
}

TEST(PlannerInputOf, ADeadlineCountsFromTheCreationQueueingInside) {
  Job job = CreatedJob();
  job.spec.objective.deadline_seconds = 600;
  // It waited for 60 s and was active for 40.
  const JobSpent spent{.active_seconds = 40, .money = 0, .wall = At("2026-01-31T12:01:40Z")};
  EXPECT_DOUBLE_EQ(DeadlineLeft(job, spent), 500);
  EXPECT_DOUBLE_EQ(PlannerInputOf(job, Platform{}, spent, false).elapsed_seconds, 100);
  // A clock that is behind the server's: it was active, so it exists.
  EXPECT_DOUBLE_EQ(DeadlineLeft(job, {.active_seconds = 40, .wall = At("2026-01-31T11:59:00Z")}),
                   560);
  EXPECT_DOUBLE_EQ(DeadlineLeft(job, {.wall = At("2026-01-31T13:00:00Z")}), 0.001) << "over";
  job.metadata.creation_timestamp.clear();
  EXPECT_DOUBLE_EQ(DeadlineLeft(job, spent), 560) << "of a file: it begins now";
}

// Also where it has passed: nothing is left of it, and what the user asked for stays what it is.
TEST(PlannerInputOf, TheDeadlineOfTheWholeIsTheOneThatWasGiven) {
  Job job = CreatedJob();
  job.spec.objective.deadline_seconds = 1;
  const PlannerInput input =
      PlannerInputOf(job, Platform{}, {.active_seconds = 5, .wall = At(kCreated)}, false);
  EXPECT_EQ(input.objective.deadline_seconds, 0.001);
  EXPECT_EQ(input.whole_deadline_seconds, 1);
  EXPECT_EQ(input.elapsed_seconds, 5);
}

TEST(PlannerInputOf, FinishByIsADeadlineAtThatTime) {
  Job job = CreatedJob();
  job.spec.objective.finish_by = At("2026-01-31T12:10:00Z");
  EXPECT_DOUBLE_EQ(DeadlineLeft(job, {.active_seconds = 40, .wall = At("2026-01-31T12:01:40Z")}),
                   500);
  EXPECT_DOUBLE_EQ(DeadlineLeft(job, {.wall = At("2026-01-31T12:10:00Z")}), 0.001);
  job.metadata.creation_timestamp.clear();
  EXPECT_DOUBLE_EQ(DeadlineLeft(job, {.wall = At("2026-01-31T12:01:40Z")}), 500);
}

TEST(PlannerInputOf, ABudgetIsLessWhatIsSpent) {
  Job job = CreatedJob();
  job.spec.objective.deadline_seconds = 600;
  job.spec.objective.budget = 2;
  const PlannerInput input = PlannerInputOf(
      job, Platform{}, {.active_seconds = 0, .money = 0.5, .wall = At(kCreated)}, false);
  EXPECT_DOUBLE_EQ(*input.objective.budget, 1.5);
  EXPECT_DOUBLE_EQ(*input.objective.deadline_seconds, 600);
}

// A missed time is answered with a time.
TEST(PlannerInputOf, ACertificateNamesTheTimeThatWouldDo) {
  Job job = CreatedJob();
  job.spec.objective.finish_by = At("2026-01-31T12:01:50Z");
  Platform platform;
  platform.memory = {.min_mib = 256, .max_mib = 256, .step_mib = 64};
  platform.max_functions = 2;
  const PlannerInput input = PlannerInputOf(
      job, platform, {.active_seconds = 0, .wall = At("2026-01-31T12:01:40Z")}, true);
  PlannerInput asked = input;
  asked.objective.deadline_seconds = 0.01;
  asked.elapsed_seconds = 100;
  const PlanningOutcome outcome = MakePlan(asked).value();
  ASSERT_FALSE(outcome.feasible);
  const std::string reason = ReasonOf(outcome.certificate);
  EXPECT_THAT(reason, HasSubstr("set objective.finishBy to 2026-01-31T12:0"));
  EXPECT_THAT(reason, Not(HasSubstr("deadlineSeconds")));
}

// Of a job whose every time is known.
PlannerInput TimedInput(const TimeFactors& corrections) {
  Job job = CreatedJob();
  job.spec.objective.fixed = Objective::Fixed{2, 512};
  WorkloadProfile& profile = *job.status.profile;
  profile.cold_start_seconds = 3;
  profile.store_bytes_per_second = 1e8;
  profile.store_request_seconds = 0.01;
  profile.evaluation_samples = 500;
  profile.evaluation_rate = {.slope = 2, .intercept = 0};
  job.status.execution.corrections = corrections;
  return PlannerInputOf(job, Platform{}, {}, false);
}

TEST(PlannerInputOf, TimesAreMultipliedByTheCorrections) {
  const Prediction as_measured = PredictPlan(TimedInput({}), 2, 512)->predicted;
  const Prediction corrected = PredictPlan(TimedInput({2, 3, 4, 5}), 2, 512)->predicted;
  EXPECT_NEAR(corrected[Term::kCompute], 2 * as_measured[Term::kCompute], 1e-9);
  EXPECT_NEAR(corrected[Term::kCommunication], 3 * as_measured[Term::kCommunication], 1e-9);
  EXPECT_NEAR(corrected[Term::kColdStart], 4 * as_measured[Term::kColdStart], 1e-9);
  EXPECT_NEAR(corrected[Term::kEvaluation], 2 * 5 * as_measured[Term::kEvaluation], 1e-9);
  EXPECT_GT(as_measured[Term::kEvaluation], 0);
  EXPECT_GT(as_measured[Term::kCommunication], 0);
}

TEST(RemainingCost, OfAJobThatTakesWhatWasPredictedIsWhatWasPredicted) {
  PlannerInput input = TimedInput({});
  input.platform.prices.gib_second = 1e-5;
  input.platform.prices.put_request = 5e-6;
  const Result<PlanningOutcome> outcome = MakePlan(input);
  ASSERT_TRUE(outcome.ok() && outcome->feasible);
  JobStatus status;
  status.plan = outcome->plan;
  const Prediction& predicted = outcome->plan.predicted;
  const double whole = RemainingCost(status, input.platform, 0, predicted.seconds);
  EXPECT_NEAR(whole, predicted.cost, 1e-6 * predicted.cost);
  // Half of the requests are still to come, whatever the rest takes.
  const double half = RemainingCost(status, input.platform, status.plan->iterations / 2, 0);
  const double seconds_cost =
      RemainingCost(status, input.platform, status.plan->iterations, predicted.seconds);
  EXPECT_NEAR(2 * half + seconds_cost, predicted.cost, 1e-6 * predicted.cost);
  EXPECT_GT(half, 0);
  // Under a later revision what was spent before is in its prediction.
  PlanRecord record;
  record.at_seconds = 100;
  record.cost_before = 0.5;
  status.plan_history = {record};
  status.plan->predicted.seconds += 100;
  status.plan->predicted.cost += 0.5;
  EXPECT_NEAR(RemainingCost(status, input.platform, 0, predicted.seconds), whole, 1e-9);
}

TEST(FinishByInThePast, IsToldWithTheTimeThatItIsComparedWith) {
  Job job = CreatedJob();
  const WallTime now = At("2026-01-31T14:00:00Z");
  EXPECT_EQ(FinishByInThePast(job, now), "");
  job.spec.objective.finish_by = At("2026-01-31T12:00:01Z");
  EXPECT_EQ(FinishByInThePast(job, now), "") << "it passed while the job waited";
  job.spec.objective.finish_by = At(kCreated);
  EXPECT_THAT(FinishByInThePast(job, now),
              HasSubstr("in the past when the job was created (2026-01-31T12:00:00Z); give a time "
                        "that is still to come"));
  job.metadata.creation_timestamp.clear();
  EXPECT_THAT(FinishByInThePast(job, now), HasSubstr("in the past when the job begins; give"));
  EXPECT_EQ(FinishByInThePast(job, At("2026-01-31T11:00:00Z")), "");
}

}  // namespace
}  // namespace lambdadnn
