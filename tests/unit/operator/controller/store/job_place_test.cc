// SPDX-License-Identifier: Apache-2.0
// What is kept in a job's place for an object that was restored, and ids of jobs.
#include "operator/controller/store/job_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/objectstore/memory_object_store.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_id.h"
#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

Job PlannedJob() {
  Job job = *DecodeJob(JobWorld::MinimalJob());
  job.metadata.uid = "4f6c2b1e-9d3a-4e0b-8f6e-2f1d5a7c9b10";
  job.status.plan.emplace();
  job.status.plan->functions = 2;
  job.status.plan->memory_mib = 512;
  job.status.plan->server_memory_mib = 256;
  job.status.plan->local_batch_size = 32;
  job.status.plan->global_batch_size = 64;
  job.status.plan->iterations = 100;
  job.status.plan->iterations_per_epoch = 50;
  job.status.plan->parameters = 1000;
  job.status.plan->aggregation.layers = {1, 2};
  job.status.profile = job.spec.profile;
  job.status.execution.incarnation = 3;
  job.status.execution.functions = {{"worker-0", 1, "uid"}};
  job.status.usage.slices = 7;
  return job;
}

TEST(JobPlace, ARecordHasWhatIsNeededToGoOn) {
  const Job job = PlannedJob();
  ASSERT_TRUE(job.status.plan->Validate().ok()) << job.status.plan->Validate().ToString();
  const Result<PlaceRecord> record = DecodePlaceRecord(EncodePlaceRecord(job, 12.5));
  ASSERT_TRUE(record.ok()) << record.status().ToString();
  EXPECT_EQ(record->uid, job.metadata.uid);
  EXPECT_EQ(record->status.plan, job.status.plan);
  EXPECT_EQ(record->status.profile, job.status.profile);
  EXPECT_EQ(record->status.execution.incarnation, 3);
  EXPECT_EQ(record->status.execution.active_seconds, 12.5);
  EXPECT_TRUE(record->status.execution.functions.empty());
  EXPECT_EQ(record->status.usage.slices, 7);
  EXPECT_TRUE(IsSameWork(job.spec, record->work));
}

TEST(JobPlace, WhatNoOperatorHasWrittenIsNoRecord) {
  const Json good = *ParseJson(EncodePlaceRecord(PlannedJob(), 0));
  ASSERT_TRUE(DecodePlaceRecord(good.dump()).ok());
  std::vector<std::string> bad = {
      "", "null", "[]", "{", "\xff", std::string(1 << 21, ' '), std::string(1'000'000, '[')};
  for (const char* field : {"uid", "work", "status"}) {
    Json without = good;
    without.erase(field);
    bad.push_back(without.dump());
    for (const Json& other : {Json(1), Json("x"), Json::array(), Json(nullptr)}) {
      if (std::string(field) == "uid" && other.is_string()) continue;
      Json changed = good;
      changed[field] = other;
      bad.push_back(changed.dump());
    }
  }
  for (const char* field : {"plan", "profile"}) {
    Json without = good;
    without["status"].erase(field);
    bad.push_back(without.dump());
  }
  Json impossible = good;
  impossible["status"]["plan"]["functions"] = -1;
  bad.push_back(impossible.dump());
  impossible = good;
  impossible["status"]["execution"]["incarnation"] = -1;
  bad.push_back(impossible.dump());
  impossible["status"]["execution"]["incarnation"] = kMostIncarnations;
  bad.push_back(impossible.dump());
  for (const std::string& text : bad) {
    EXPECT_EQ(DecodePlaceRecord(text).status().code(), StatusCode::kDataLoss)
        << text.substr(0, 200);
  }
}

TEST(JobPlace, WorkIsComparedWithTheDefaultsOfAbsentFields) {
  const Job job = PlannedJob();
  Json work = WorkOf(job.spec);
  EXPECT_TRUE(IsSameWork(job.spec, work));
  work["training"].erase("loss");  // a version that did not know the field
  EXPECT_TRUE(IsSameWork(job.spec, work));
  work["training"]["seed"] = 8;
  EXPECT_FALSE(IsSameWork(job.spec, work));
  EXPECT_FALSE(IsSameWork(job.spec, Json::object()));
  EXPECT_FALSE(IsSameWork(job.spec, Json()));
}

TEST(JobPlace, AReportTellsHowAJobEnded) {
  MemoryObjectStore store;
  EXPECT_FALSE(ReadPlaceOutcome(store, "p")->has_value());
  for (const char* text : {"", "[]", R"({"outcome": 1})", R"({"outcome": "Running"})"}) {
    ASSERT_TRUE(store.Put("p/results/report.json", AsBytes(std::string_view(text))).ok());
    EXPECT_FALSE(ReadPlaceOutcome(store, "p")->has_value()) << text;
  }
  const std::string failed =
      R"({"outcome": "Failed", "reason": "OutOfMemory", "message": "why", "job": {"uid": "u"}})";
  ASSERT_TRUE(store.Put("p/results/report.json", AsBytes(failed)).ok());
  const auto outcome = ReadPlaceOutcome(store, "p");
  ASSERT_TRUE(outcome.ok() && outcome->has_value());
  EXPECT_FALSE((*outcome)->success);
  EXPECT_EQ((*outcome)->uid, "u");
  EXPECT_EQ((*outcome)->reason, "OutOfMemory");
  EXPECT_EQ((*outcome)->message, "why");
}

TEST(JobId, BeginsWithTheNameAndHasCharactersOfTheUid) {
  ObjectMeta metadata;
  metadata.name = "my-cnn";
  metadata.uid = "4f6c2b1e-9d3a-4e0b-8f6e-2f1d5a7c9b10";
  EXPECT_EQ(OwnJobId(metadata), "my-cnn-4f6c2b1e9d3a");
  EXPECT_TRUE(IsJobIdOf(OwnJobId(metadata), "my-cnn"));
  // No job named "my" can have it, nor one that is named like the id.
  EXPECT_FALSE(IsJobIdOf(OwnJobId(metadata), "my"));
  EXPECT_FALSE(IsJobIdOf(OwnJobId(metadata), "my-cnn-4f6c2b1e9d3a"));
  EXPECT_FALSE(IsJobIdOf("", ""));
  EXPECT_FALSE(IsJobIdOf("-a", ""));
}

TEST(JobId, StatusGoesBeforeTheAnnotation) {
  Job job;
  job.metadata.name = "a";
  job.metadata.uid = "0123456789abcdef";
  EXPECT_EQ(JobIdOf(job), "a-0123456789ab");
  job.metadata.annotations[kJobIdAnnotation] = "a-x";
  EXPECT_EQ(JobIdOf(job), "a-x");
  job.status.execution.job_id = "a-y";
  EXPECT_EQ(JobIdOf(job), "a-y");
  job.status.execution.job_id = "b-y";
  EXPECT_EQ(JobIdOf(job), "a-x");
}

}  // namespace
}  // namespace lambdadnn
