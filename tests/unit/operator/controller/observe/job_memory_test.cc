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

}  // namespace
}  // namespace lambdadnn
