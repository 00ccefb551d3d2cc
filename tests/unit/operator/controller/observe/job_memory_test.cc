// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/job_memory.h"

#include <gtest/gtest.h>

#include <memory>

#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

Job LayeredJob() {
  Job job;
  Plan plan;
  plan.functions = 4;
  plan.aggregation.layers = {1, 2, 4};
  plan.global_batch_size = 4;
  plan.local_batch_size = 1;
  plan.iterations = 100;
  job.status.plan = plan;
  return job;
}

int64_t IterationAfter(JobMemory& memory, const Job& job, const Role& role, int64_t iteration) {
  SliceFact slice;
  slice.invocation = role.Name();
  slice.role = role;
  memory.observations.slices[slice.invocation] = slice;
  SliceView view;
  view.invocation = slice.invocation;
  view.last = ProgressLine{};
  view.last->iteration = iteration;
  memory.ObserveSlices({view}, job, Platform{}, Instant{}, [](const Json&) {});
  return memory.observations.iteration;
}

TEST(JobMemory, ProgressIsWhatTheRootHasDone) {
  const Job job = LayeredJob();
  JobMemory memory;
  for (const Role& role : PlannedRoles(*job.status.plan)) {
    const bool root = IsRoot(role, *job.status.plan);
    EXPECT_EQ(root, role.Name() == "server-2");
    EXPECT_EQ(IterationAfter(memory, job, role, 30), root ? 30 : -1) << role.Name();
  }
}

// While its workers load the root sends heartbeats.
TEST(JobMemory, OnlyTimeBetweenIterationsOfASliceIsLearntFrom) {
  Job job = LayeredJob();
  Plan& plan = *job.status.plan;
  plan.predicted.iterations = 100;
  plan.predicted[Term::kCompute] = 1;
  job.status.profile.emplace();
  JobMemory memory;
  const Role root = PlannedRoles(plan).back();
  ASSERT_TRUE(IsRoot(root, plan));
  const auto tell = [&](const std::string& invocation, int64_t first, int64_t iteration,
                        double seconds) {
    SliceFact& slice = memory.observations.slices[invocation];
    slice.invocation = invocation;
    slice.role = root;
    slice.first_iteration = first;
    SliceView view;
    view.invocation = invocation;
    view.last = ProgressLine{};
    view.last->iteration = iteration;
    view.last->seconds = seconds - (first > 0 ? 150 : 0);  // of its slice
    view.last->loss = 0.5;
    view.new_lines = {*view.last};
    job.status.execution.first_iteration = first;
    const Instant now(FromSeconds(seconds));
    memory.Begin(job, now, WallTime{});
    memory.ObserveSlices({view}, job, Platform{}, now, [](const Json&) {});
  };
  const OnlineEstimate& estimate = memory.observations.estimate;
  tell("first", 0, 0, 1);
  tell("first", 0, 0, 50);
  tell("first", 0, 1, 100);
  EXPECT_EQ(estimate.stretches(), 0);
  tell("first", 0, 11, 110);
  EXPECT_EQ(estimate.stretches(), 1);
  tell("second", 11, 11, 200);
  tell("second", 11, 12, 300);
  tell("second", 11, 22, 310);
  EXPECT_EQ(estimate.stretches(), 2);
  EXPECT_NEAR(estimate.iteration_factor(), 1, 0.001);
  // An earlier plan's function that goes on by itself.
  memory.observations.slices["second"].plan_revision = 7;
  tell("second", 11, 32, 500);
  EXPECT_EQ(estimate.stretches(), 2);
  EXPECT_EQ(memory.history.estimates().newest().iteration, 22);
}

TEST(JobMemory, AnotherProcessGoesOnFromWhatTheStatusTells) {
  Job job = LayeredJob();
  Plan& plan = *job.status.plan;
  plan.predicted.iterations = 100;
  plan.predicted[Term::kCompute] = 1;
  job.status.profile.emplace();
  job.status.progress.iteration = 20;
  job.status.progress.estimated_remaining_seconds = 240;
  JobMemory memory;
  memory.Begin(job, Instant{}, WallTime{});
  EXPECT_NEAR(memory.observations.estimate.iteration_factor(), 3, 1e-9);
  job.status.progress.estimated_remaining_seconds = 80;
  memory.Begin(job, Instant{}, WallTime{});
  EXPECT_NEAR(memory.observations.estimate.iteration_factor(), 3, 1e-9) << "it knows itself now";
}

}  // namespace
}  // namespace lambdadnn
