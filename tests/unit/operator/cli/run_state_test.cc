// SPDX-License-Identifier: Apache-2.0
// Folders of runs that another version of this program began.
#include "operator/cli/run/run_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

Json State(const Json& status) {
  Json job = Json::parse(R"({"apiVersion": "lambdadnn.io/v1alpha1",
      "kind": "ServerlessTrainingJob", "metadata": {"name": "digits", "namespace": "default"},
      "spec": {}})");
  job["status"] = status;
  return {{"resourceVersion", 7}, {"objects", Json::array({job})}};
}

TEST(RunState, OfThisVersionIsTakenAsItIs) {
  const Json state = State({{"phase", "Running"}, {"progress", {{"iteration", 5}}}});
  EXPECT_EQ(ReadRunState(state.dump()).value(), state);
}

// A deadline counts from the creation, but not the time in which no run was there.
TEST(RunState, TheTimeBetweenTwoRunsIsNoneOfTheJobs) {
  Json state = State({{"phase", "Running"}});
  state["objects"][0]["metadata"]["creationTimestamp"] = "2026-01-31T12:00:00.250Z";
  const Json read = ReadRunState(state.dump(), FromSeconds(3600)).value();
  EXPECT_EQ(read["objects"][0]["metadata"]["creationTimestamp"], "2026-01-31T13:00:00.250Z");
  EXPECT_EQ(ReadRunState(state.dump()).value(), state);
}

// The time that is left was text once.
TEST(RunState, WhatIsWorkedOutAnywayMayHaveAnotherForm) {
  const Json older = State({{"progress", {{"iteration", 5}, {"estimatedRemainingSeconds", "12"}}},
                            {"usage", {{"colour", "red"}, {"slices", 3}}}});
  const Result<Json> state = ReadRunState(older.dump());
  ASSERT_TRUE(state.ok()) << state.status().ToString();
  const Json& status = state->at("objects")[0].at("status");
  EXPECT_EQ(status.at("progress"), Json({{"iteration", 5}}));
  EXPECT_EQ(status.at("usage"), Json({{"slices", 3}}));
}

TEST(RunState, WhatTheRunHangsOnMustBeUnderstood) {
  const Json newer = State({{"execution", {{"incarnation", "second"}}}});
  const Status status = ReadRunState(newer.dump()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("status.execution.incarnation"));
  EXPECT_THAT(status.message(), HasSubstr("without --resume"));
}

TEST(RunState, AnythingElseIsAnError) {
  for (const char* text : {"", "{", "[]", "{}", R"({"objects": 1})"}) {
    EXPECT_FALSE(ReadRunState(text).ok()) << text;
  }
}

}  // namespace
}  // namespace lambdadnn
