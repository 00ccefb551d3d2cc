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

TEST(JobMemory, WhatStatusMeasuresIsNoReasonNotToReadAJob) {
  Json object = {{"apiVersion", kApiVersion}, {"kind", kJobKind}, {"metadata", {{"name", "j"}}}};
  object["spec"] = Json::object();
  object["status"] = {{"usage", 7}, {"phase", 1}};
  JobMemory memory;
  const JobMemory::Decoded& decoded = memory.Decode(object);
  EXPECT_TRUE(decoded.unreadable.ok()) << decoded.unreadable.ToString();
  EXPECT_EQ(decoded.problem.message().find("status"), std::string::npos)
      << decoded.problem.message();
  object["status"]["startTime"] = 5;
  memory.Decode(object);
  EXPECT_NE(decoded.unreadable.message().find("status.startTime"), std::string::npos);
}

TEST(JobMemory, AJobOfAnEarlierApiIsNoLongerGoneOnWithAndIsToldWhereItsCheckpointsAre) {
  Json object = {{"apiVersion", kApiVersion}, {"kind", kJobKind}};
  object["metadata"] = {{"name", "j"}, {"namespace", "team"}, {"uid", "some-uid"}};
  object["spec"] = {{"runtime", {{"image", "registry.example/worker:1"}}}};
  object["status"] = {{"plan", {{"revision", 1}, {"predicted", {{"seconds", 3.5}}}}},
                      {"execution", {{"plannedFor", "0123456789abcdef"}}}};
  JobMemory memory;
  const JobMemory::Decoded& decoded = memory.Decode(object);
  EXPECT_TRUE(decoded.unreadable.ok()) << decoded.unreadable.ToString();
  EXPECT_FALSE(decoded.job.status.plan.has_value());
  for (const char* part : {"earlier version of the API", "team/some-uid", "resumeFrom",
                           "spec.runtime", "spec.podTemplate"}) {
    EXPECT_NE(decoded.problem.message().find(part), std::string::npos)
        << part << ": " << decoded.problem.message();
  }
  object["status"]["plan"]["predicted"]["seconds"] = "3.5";
  memory.Decode(object);
  EXPECT_FALSE(decoded.unreadable.ok());
}

}  // namespace
}  // namespace lambdadnn
