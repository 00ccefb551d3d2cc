// SPDX-License-Identifier: Apache-2.0
// Whole lives in virtual time of jobs whose functions are faster or slower than the profile says:
// what is left of them, and when they get another plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "operator/controller/planning/planning.h"
#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;

// Of one function, samples a second: four times the memory is less than twice as fast, so that the
// smallest function is the cheapest.
constexpr double kSlope = 0.25;
constexpr double kIntercept = 200;

// Of an iteration, by that; what the exchange takes is next to nothing.
double ProfiledSeconds(const ExecutionPlan& plan) {
  return std::ceil(static_cast<double>(plan.global_batch_size) / plan.functions) /
         (kSlope * plan.memory_mib + kIntercept);
}

// Functions that take this many times as long as profiled. `variation`: of their speed, in waves of
// 6 s.
FakeFunctionsOptions Slower(double factor, double variation = 0) {
  FakeFunctionsOptions options;
  options.iterations_after = [=](const ExecutionPlan& plan, double seconds) {
    const double waves = std::sin(seconds) * variation;
    return (seconds + waves) / (factor * ProfiledSeconds(plan));
  };
  return options;
}

// 1,000 iterations under a given plan.
Json FixedJob(const std::string& name = "digits") {
  Json job = JobWorld::MinimalJob();
  job["metadata"]["name"] = name;
  job["spec"]["training"]["epochs"] = 20;
  job["spec"]["profile"]["trainingRate"] = {{"slope", std::to_string(kSlope)},
                                            {"intercept", std::to_string(kIntercept)}};
  return job;
}

// The planner chooses the memory of one function: 256 MiB take 242 s, 1 GiB 140 s.
Json FreeJob(const Json& objective) {
  Json job = FixedJob();
  job["spec"]["aggregation"] = JobWorld::DedicatedServers();
  job["spec"]["objective"] = objective;
  job["spec"]["functions"] = {{"max", 1}};
  return job;
}

Json Deadline(int seconds) { return {{"deadlineSeconds", seconds}}; }

// Looks less often, for the lives of minutes.
struct LazyWorld : JobWorld {
  explicit LazyWorld(const FakeFunctionsOptions& fake) : JobWorld(fake) {
    options.tick_seconds = 0.25;
  }
};

int64_t EventsOf(const JobWorld& world, Reason reason) {
  return std::count_if(world.told.begin(), world.told.end(),
                       [&](const EventDraft& event) { return event.reason == ReasonText(reason); });
}

bool RunUntilIteration(JobWorld& world, int64_t iteration) {
  return world.RunUntil([&] { return world.Read().status.progress.iteration >= iteration; }, 2000);
}

double SecondsOfLife(JobWorld& world) {
  const Job job = world.Read();
  WallTime created, completed;
  EXPECT_TRUE(ParseRfc3339(job.metadata.creation_timestamp, &created));
  EXPECT_TRUE(ParseRfc3339(job.status.completion_time, &completed));
  return ToSeconds(completed - created);
}

Json ReportOf(JobWorld& world) {
  for (const std::string& key : world.Keys()) {
    if (!key.ends_with("/results/report.json")) continue;
    return *ParseJson(AsText(*world.memory_store.Get(key, std::nullopt)));
  }
  return Json();
}

TEST(Estimate, ATenthOfTheIterationsTellsWhatIsLeftWithinThreePerCent) {
  for (const double factor : {0.7, 1.0, 1.3, 3.0}) {
    JobWorld world(Slower(factor));
    world.Create(FixedJob());
    ASSERT_TRUE(RunUntilIteration(world, 100));
    const JobStatus told = world.Read().status;
    const Instant then = world.time.clock.Now();
    ASSERT_TRUE(world.RunUntilFinished(1000));
    const double left = ToSeconds(world.time.clock.Now() - then);
    ASSERT_TRUE(told.progress.estimated_remaining_seconds.has_value());
    EXPECT_NEAR(*told.progress.estimated_remaining_seconds, left, 0.03 * left + 1) << factor;
    const JobStatus done = world.Read().status;
    ASSERT_TRUE(told.progress.estimated_cost.has_value());
    EXPECT_NEAR(*told.progress.estimated_cost / done.usage.cost, 1, 0.05) << factor;
    EXPECT_FALSE(done.progress.estimated_remaining_seconds.has_value());
    EXPECT_FALSE(done.progress.estimated_cost.has_value());
  }
}

TEST(Estimate, IsThePredictionAsSoonAsTheJobHasItsPlanAndCapacity) {
  JobWorld world(Slower(1));
  world.Create(FixedJob());
  ASSERT_TRUE(world.RunUntil([&] { return !world.Read().status.start_time.empty(); }, 20));
  const JobStatus status = world.Read().status;
  ASSERT_TRUE(status.progress.estimated_remaining_seconds.has_value());
  EXPECT_NEAR(*status.progress.estimated_remaining_seconds, status.plan->predicted.seconds, 1);
  EXPECT_NEAR(*status.progress.estimated_cost, status.plan->predicted.cost,
              0.001 * status.plan->predicted.cost);
}

TEST(Estimate, ASuspendedJobHasNone) {
  JobWorld world(Slower(1));
  world.Create(FixedJob());
  ASSERT_TRUE(RunUntilIteration(world, 100));
  world.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(world.RunUntil([&] { return world.Reason("Suspended") == "True/JobSuspended"; }, 60));
  EXPECT_FALSE(world.Read().status.progress.estimated_remaining_seconds.has_value());
}

TEST(Estimate, GoesOnWhereTheProcessBeforeEnded) {
  JobWorld world(Slower(3));
  world.Create(FixedJob());
  ASSERT_TRUE(RunUntilIteration(world, 300));
  const double before = *world.Read().status.progress.estimated_remaining_seconds;
  world.RestartController();
  const int64_t then = world.Read().status.progress.iteration;
  ASSERT_TRUE(RunUntilIteration(world, then + 1));
  const JobStatus after = world.Read().status;
  EXPECT_LT(after.progress.iteration, then + 20);
  EXPECT_NEAR(*after.progress.estimated_remaining_seconds, before, 0.05 * before);
}

TEST(Estimate, OfTheWholeTimeIsInTheReport) {
  JobWorld world(Slower(2));
  world.Create(FixedJob());
  ASSERT_TRUE(world.RunUntilFinished(1000));
  const Json report = ReportOf(world);
  const Json& estimates = report["curves"]["estimates"];
  ASSERT_GT(estimates.size(), 30u);
  ASSERT_LT(estimates.size(), 600u);
  const double actual = report["actual"]["seconds"].get<double>();
  EXPECT_LT(estimates.front()["seconds"].get<double>(), 0.7 * actual);
  EXPECT_NEAR(estimates.back()["seconds"].get<double>(), actual, 0.05 * actual);
  for (size_t i = 1; i < estimates.size(); ++i) {
    EXPECT_GT(estimates[i]["iteration"].get<int64_t>(),
              estimates[i - 1]["iteration"].get<int64_t>());
    EXPECT_GE(estimates[i]["deviationSeconds"].get<double>(), 0);
  }
}

TEST(Drift, FunctionsThreeTimesSlowerGetOneMorePlanAndMeetTheDeadline) {
  LazyWorld world(Slower(3));
  world.Create(FreeJob(Deadline(600)));
  ASSERT_TRUE(RunUntilIteration(world, 10));
  const Job before = world.Read();
  ASSERT_EQ(before.status.plan->memory_mib, 256);
  ASSERT_TRUE(world.RunUntilFinished(2000));
  const Job job = world.Read();
  EXPECT_EQ(world.Reason("Complete"), "True/TrainingFinished");
  EXPECT_LE(SecondsOfLife(world), 600);
  ASSERT_THAT(job.status.plan_history, SizeIs(2));
  const PlanRecord& next = job.status.plan_history[1];
  EXPECT_GE(next.first_iteration, 20);
  EXPECT_LT(next.first_iteration, 100);
  EXPECT_GT(next.memory_mib, 256);
  EXPECT_THAT(next.reason, HasSubstr("times as long as predicted"));
  EXPECT_NEAR(job.status.execution.corrections.compute, 3, 0.3);
  EXPECT_EQ(job.status.execution.drift_replans, 1);
  EXPECT_EQ(world.functions.iterations_done(), 1000) << "nothing twice";
  EXPECT_EQ(job.status.usage.restarts, 0);
  EXPECT_EQ(EventsOf(world, Reason::kPredictionDrift), 1);
  for (const EventDraft& event : world.told) {
    if (event.reason != ReasonText(Reason::kPredictionDrift)) continue;
    EXPECT_THAT(event.note, HasSubstr("times as long as predicted"));
    EXPECT_THAT(event.note, HasSubstr("after its deadline"));
    EXPECT_THAT(event.note, HasSubstr("in place of " + DescribePlan(*before.status.plan)));
    EXPECT_THAT(event.note, HasSubstr(DescribePlan(*job.status.plan)));
  }
}

// What the plan in force was made with is in status.
TEST(Drift, AProcessThatDiesWhileItStopsForAnotherPlanIsFollowedByOneThatMakesIt) {
  LazyWorld world(Slower(3));
  world.Create(FreeJob(Deadline(600)));
  ASSERT_TRUE(
      world.RunUntil([&] { return world.Reason("Provisioned") == "False/PredictionDrift"; }, 200));
  world.RestartController();
  ASSERT_TRUE(RunUntilIteration(world, 500));
  world.RestartController();
  ASSERT_TRUE(world.RunUntilFinished(2000));
  const Job job = world.Read();
  EXPECT_LE(SecondsOfLife(world), 600);
  EXPECT_THAT(job.status.plan_history, SizeIs(2));
  EXPECT_NEAR(job.status.execution.corrections.compute, 3, 0.5);
}

TEST(Drift, NoiseIsNoReason) {
  for (const double variation : {0.1, 0.3}) {
    LazyWorld world(Slower(1, variation));
    world.Create(FreeJob(Deadline(300)));
    ASSERT_TRUE(world.RunUntilFinished(2000));
    EXPECT_THAT(world.Read().status.plan_history, SizeIs(1)) << variation;
    EXPECT_EQ(EventsOf(world, Reason::kPredictionDrift), 0) << variation;
    EXPECT_LE(SecondsOfLife(world), 300);
  }
}

TEST(Drift, WithoutAPlanInTimeItIsToldOnce) {
  LazyWorld world(Slower(3));
  Json job = FreeJob(Deadline(600));
  job["spec"]["functions"] = {{"max", 1}, {"memory", {{"max", "256Mi"}}}};
  world.Create(job);
  ASSERT_TRUE(
      world.RunUntil([&] { return world.Reason("Degraded") == "True/PredictionDrift"; }, 200));
  const std::string message = FindCondition(world.Read(), "Degraded")->message;
  EXPECT_THAT(message, HasSubstr("times as long as predicted"));
  EXPECT_THAT(message, HasSubstr("no plan is in time"));
  ASSERT_TRUE(world.RunUntilFinished(2000));
  EXPECT_EQ(world.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world.Reason("Degraded"), "True/PredictionDrift");
  EXPECT_EQ(EventsOf(world, Reason::kPredictionDrift), 1);
  EXPECT_THAT(world.Read().status.plan_history, SizeIs(1));
  EXPECT_EQ(world.functions.requests().size(), world.functions.started().size());
}

TEST(Drift, AJobThatIsInTimeAfterAllHasRecovered) {
  FakeFunctionsOptions options;
  // Slow for a minute.
  options.iterations_after = [](const ExecutionPlan& plan, double seconds) {
    const double slow = std::min(seconds, 60.0);
    return (slow / 3 + (seconds - slow) * 1.5) / ProfiledSeconds(plan);
  };
  LazyWorld world(options);
  Json job = FreeJob(Deadline(400));
  job["spec"]["functions"] = {{"max", 1}, {"memory", {{"max", "256Mi"}}}};
  world.Create(job);
  ASSERT_TRUE(
      world.RunUntil([&] { return world.Reason("Degraded") == "True/PredictionDrift"; }, 60));
  ASSERT_TRUE(world.RunUntil([&] { return world.Reason("Degraded") == "False/Recovered"; }, 200));
  ASSERT_TRUE(world.RunUntilFinished(2000));
  EXPECT_EQ(EventsOf(world, Reason::kPredictionDrift), 1);
}

TEST(Drift, FunctionsThreeTimesFasterGetACheaperPlan) {
  LazyWorld world(Slower(1.0 / 3));
  world.Create(FreeJob(Deadline(180)));
  ASSERT_TRUE(RunUntilIteration(world, 10));
  ASSERT_GT(world.Read().status.plan->memory_mib, 512);
  ASSERT_TRUE(world.RunUntilFinished(400));
  const Job job = world.Read();
  EXPECT_LE(SecondsOfLife(world), 180);
  ASSERT_THAT(job.status.plan_history, SizeIs(2));
  EXPECT_EQ(job.status.plan_history[1].memory_mib, 256);
  EXPECT_EQ(EventsOf(world, Reason::kPredictionDrift), 1);
  for (const EventDraft& event : world.told) {
    if (event.reason != ReasonText(Reason::kPredictionDrift)) continue;
    EXPECT_THAT(event.note, HasSubstr("of what remains"));
  }
}

// The start of another plan would cost more than it saves.
TEST(Drift, ACheaperPlanThatIsNotWorthItsSwitchIsNotTaken) {
  FakeFunctionsOptions options = Slower(1.0 / 3);
  options.start_seconds = 40;
  LazyWorld world(options);
  Json job = FreeJob(Deadline(230));
  job["spec"]["profile"]["coldStartSeconds"] = "40";
  world.Create(job);
  ASSERT_TRUE(world.RunUntilFinished(400));
  EXPECT_THAT(world.Read().status.plan_history, SizeIs(1));
  EXPECT_EQ(EventsOf(world, Reason::kPredictionDrift), 0);
}

// Nothing that is decided by time may change the arithmetic of a plan that is given.
TEST(Drift, AFixedPlanIsKeptWhateverItTakes) {
  std::vector<std::vector<ExecutionPlan>> plans;
  std::vector<std::string> digests;
  for (const double factor : {1.0, 6.0}) {
    LazyWorld world(Slower(factor));
    world.Create(FixedJob());
    ASSERT_TRUE(world.RunUntilFinished(4000));
    EXPECT_THAT(world.Read().status.plan_history, SizeIs(1));
    std::vector<ExecutionPlan>& of_run = plans.emplace_back();
    for (const auto& [at, request] : world.functions.requests()) of_run.push_back(request.plan);
    digests.push_back(world.Read().status.model_digest);
  }
  ASSERT_FALSE(plans[0].empty());
  EXPECT_EQ(plans[0].front(), plans[1].front());
  EXPECT_THAT(plans[1], Each(plans[0].front()));
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(Drift, ABetterPlanThatHasNoCapacityIsNotWaitedFor) {
  LazyWorld world(Slower(3));
  world.options.capacity.memory_mib = 1900;
  world.RestartController();
  Json other = FixedJob("other");
  other["spec"]["training"]["epochs"] = 2000;
  world.Create(other);
  ASSERT_TRUE(world.RunUntil([&] { return !world.Read("other").status.start_time.empty(); }, 20));
  world.Create(FreeJob(Deadline(600)));
  ASSERT_TRUE(world.RunUntil([&] { return EventsOf(world, Reason::kPlanKept) > 0; }, 200));
  const Job kept = world.Read();
  EXPECT_THAT(FindCondition(kept, "Provisioned")->message, HasSubstr("there is no capacity for"));
  EXPECT_FALSE(kept.status.start_time.empty());
  const size_t slices = world.functions.requests().size();
  ASSERT_TRUE(RunUntilIteration(world, 200));
  EXPECT_EQ(world.functions.requests().size(), slices) << "those that run are not disturbed";
  EXPECT_THAT(world.Read().status.plan_history, SizeIs(1));
}

}  // namespace
}  // namespace lambdadnn
