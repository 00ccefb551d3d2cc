// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/job_readings.h"

#include <gtest/gtest.h>

#include <string>

#include "operator/api/conditions.h"
#include "operator/kinds/serverless_training_job.h"
#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

TEST(ReadJob, WhatStatusMeasuresIsNoReasonNotToReadAJob) {
  Json object = {{"apiVersion", kApiVersion}, {"kind", kJobKind}, {"metadata", {{"name", "j"}}}};
  object["spec"] = Json::object();
  object["status"] = {{"usage", 7}, {"phase", 1}};
  const JobReading read = ReadJob(object);
  EXPECT_TRUE(read.unreadable.ok()) << read.unreadable.ToString();
  EXPECT_EQ(read.problem.message().find("status"), std::string::npos) << read.problem.message();
  object["status"]["startTime"] = 5;
  EXPECT_NE(ReadJob(object).unreadable.message().find("status.startTime"), std::string::npos);
}

TEST(ReadJob, AJobOfAnEarlierApiIsNoLongerGoneOnWithAndIsToldWhereItsCheckpointsAre) {
  Json object = {{"apiVersion", kApiVersion}, {"kind", kJobKind}};
  object["metadata"] = {{"name", "j"}, {"namespace", "team"}, {"uid", "some-uid"}};
  object["spec"] = {{"runtime", {{"image", "registry.example/worker:1"}}}};
  object["status"] = {{"plan", {{"revision", 1}, {"predicted", {{"seconds", 3.5}}}}},
                      {"execution", {{"plannedFor", "0123456789abcdef"}}}};
  const JobReading read = ReadJob(object);
  EXPECT_TRUE(read.unreadable.ok()) << read.unreadable.ToString();
  EXPECT_FALSE(read.spec_read) << "it takes no capacity";
  EXPECT_FALSE(read.job.status.plan.has_value());
  for (const char* part : {"earlier version of the API", "team/some-uid", "resumeFrom",
                           "spec.runtime", "spec.podTemplate"}) {
    EXPECT_NE(read.problem.message().find(part), std::string::npos)
        << part << ": " << read.problem.message();
  }
  object["status"]["plan"]["predicted"]["seconds"] = "3.5";
  EXPECT_FALSE(ReadJob(object).unreadable.ok());
}

class JobReadingsTest : public testing::Test {
 protected:
  JobReadingsTest() { Keep(world_.server.Create(ServerlessTrainingJobType(), Manifest()).value()); }

  static Json Manifest() { return JobWorld::MinimalJob(); }
  void Keep(const Json& object) { cache_.Put(object); }
  // As it is on the API server, and in the cache, after this.
  void Write(const Json& status) {
    Keep(world_.server
             .Patch(ServerlessTrainingJobType(), name_, {{"status", status}}, Subresource::kStatus)
             .value());
  }
  void Finish() {
    Json ended = Json::object();
    ended["startTime"] = "2026-01-01T00:00:00Z";
    ended["conditions"] = {{{"type", "Complete"},
                            {"status", "True"},
                            {"reason", "TrainingFinished"},
                            {"message", ""},
                            {"lastTransitionTime", "2026-01-01T01:00:00Z"}}};
    Write(ended);
  }

  const ObjectName name_ = {"default", "digits"};
  JobWorld world_;
  ObjectCache cache_{ObjectCache::Storage::kText};
  JobReadings readings_{cache_};
};

TEST_F(JobReadingsTest, AVersionIsDecodedOnceWhoeverAsks) {
  const auto first = readings_.Get(name_, JobReadings::Detail::kOutlineOfFinished);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->job.metadata.name, "digits");
  EXPECT_EQ(first->version, cache_.VersionOf(name_));
  EXPECT_EQ(readings_.Get(name_), first);
  EXPECT_EQ(readings_.decoded(), 1u);
  Write({{"phase", "Pending"}});
  const auto second = readings_.Get(name_);
  EXPECT_EQ(second->job.status.phase, "Pending");
  EXPECT_EQ(readings_.Get(name_, JobReadings::Detail::kOutlineOfFinished), second);
  EXPECT_EQ(readings_.decoded(), 2u);
  EXPECT_EQ(readings_.kept(), 1u);
}

TEST_F(JobReadingsTest, TheQueueDecodesNothingOfAJobThatHasFinished) {
  Finish();
  const auto outline = readings_.Get(name_, JobReadings::Detail::kOutlineOfFinished);
  EXPECT_EQ(readings_.decoded(), 0u);
  EXPECT_EQ(outline->version, cache_.VersionOf(name_));
  EXPECT_TRUE(IsFinished(outline->job));
  EXPECT_EQ(outline->job.status.start_time, "2026-01-01T00:00:00Z");
  EXPECT_FALSE(outline->job.metadata.creation_timestamp.empty());
  // A pass over it needs all.
  EXPECT_EQ(readings_.Get(name_)->job.metadata.name, "digits");
  EXPECT_EQ(readings_.decoded(), 1u);
  EXPECT_EQ(readings_.kept(), 0u) << "most jobs of a cluster have finished";
}

TEST_F(JobReadingsTest, OfAJobThatFinishesOrGoesNothingIsKept) {
  ASSERT_NE(readings_.Get(name_), nullptr);
  EXPECT_EQ(readings_.kept(), 1u);
  Finish();
  EXPECT_TRUE(IsFinished(readings_.Get(name_)->job));
  EXPECT_EQ(readings_.kept(), 0u);
  cache_.Remove(*cache_.Get(name_));
  EXPECT_EQ(readings_.Get(name_), nullptr);
}

TEST_F(JobReadingsTest, OfAJobThatIsDeletedNothingIsKept) {
  ASSERT_NE(readings_.Get(name_), nullptr);
  cache_.Remove(*cache_.Get(name_));
  EXPECT_EQ(readings_.Get(name_), nullptr);
  EXPECT_EQ(readings_.kept(), 0u);
}

TEST_F(JobReadingsTest, AProblemOfTheSpecIsToldOfEveryVersionOfItsGeneration) {
  Json broken = *cache_.Get(name_);
  broken["spec"]["training"]["epochs"] = -1;
  broken["metadata"]["resourceVersion"] = "1000001";
  Keep(broken);
  EXPECT_FALSE(readings_.Get(name_)->problem.ok());
  broken["metadata"]["resourceVersion"] = "1000002";
  broken["status"]["phase"] = "Pending";
  Keep(broken);
  EXPECT_EQ(readings_.Get(name_)->job.status.phase, "Pending");
  EXPECT_FALSE(readings_.Get(name_)->problem.ok());
}

}  // namespace
}  // namespace lambdadnn
