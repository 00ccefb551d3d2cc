// SPDX-License-Identifier: Apache-2.0
// A newer operator over an older CRD.
#include "operator/controller/observe/refused_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/job_schema.h"
#include "operator/api/job_validation.h"
#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RefusedFields, AreTheServersCauses) {
  EXPECT_THAT(RefusedStatusFields("patch: ServerlessTrainingJob.lambdadnn.io \"x\" is invalid: "
                                  "[status.phase: Unsupported value: \"Suspending\": supported "
                                  "values: \"Pending\", status.progress.loss: Invalid value: "
                                  "\"string\", status.notes[2].text: Too long]"),
              ElementsAre("notes", "phase", "progress.loss"));
  EXPECT_THAT(RefusedStatusFields(""), IsEmpty());
  EXPECT_THAT(RefusedStatusFields("mystatus.phase: no, status.phase is what it is"), IsEmpty());
}

TEST(RefusedFields, WhatDecisionsAreRememberedInIsNeverLeftOut) {
  EXPECT_THAT(RefusedStatusFields("status.execution.incarnation: no, status.conditions[0].reason: "
                                  "no, status.plan: no, status.startTime: no"),
              IsEmpty());
}

TEST(RefusedFields, AreDroppedWhereTheyLie) {
  Json patch = Json::parse(R"({"metadata": {"resourceVersion": "1"}, "status":
      {"phase": "Running", "progress": {"loss": "1"}, "usage": {"cost": "1", "slices": 2}}})");
  EXPECT_TRUE(DropStatusFields({"phase", "progress.loss", "usage.cost", "none.such"}, &patch));
  EXPECT_EQ(patch.at("status"), Json::parse(R"({"usage": {"slices": 2}})"));
  EXPECT_FALSE(DropStatusFields({"usage"}, &patch));
}

TEST(RefusedFields, AnOlderCrdDoesNotStallAJob) {
  JobWorld world;
  Json crd = JobCrd();
  Json& status = crd.at(
      Json::json_pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties"));
  Json& phases = status.at("phase").at("enum");
  phases.erase(std::find(phases.begin(), phases.end(), "Running"));
  // It was text once.
  status.at("progress").at("properties").at("estimatedRemainingSeconds") = {{"type", "string"}};
  ResourceDefinition older = ReadResourceDefinition(crd).value();
  older.rules = CheckJobRules;
  world.server.Define(older);

  world.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world.RunUntilFinished(60));
  EXPECT_EQ(world.Reason("Complete"), "True/TrainingFinished");
  const Job job = world.Read();
  EXPECT_EQ(job.status.phase, "Complete");
  EXPECT_EQ(job.status.progress.iteration, job.status.progress.iterations);
  // Each is told once.
  int told = 0;
  for (const EventDraft& event : world.told) {
    if (event.reason != "StatusFieldRefused") continue;
    ++told;
    EXPECT_TRUE(event.warning);
    EXPECT_THAT(event.note, HasSubstr("apply the CRD"));
  }
  EXPECT_GE(told, 1);
  EXPECT_LE(told, 2);
}

}  // namespace
}  // namespace lambdadnn
