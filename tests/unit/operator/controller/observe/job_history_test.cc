// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/job_history.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

JobHistory WithFunctions() {
  JobHistory history;
  for (const char* uid : {"a", "b"}) {
    InstanceFact fact;
    fact.instance.uid = uid;
    history.ObserveInstance(fact, 512, 0);
  }
  return history;
}

SliceFact SliceOf(const std::string& uid) {
  SliceFact slice;
  slice.invocation = "slice-" + uid;
  slice.instance_uid = uid;
  return slice;
}

void Tell(JobHistory& history, const std::string& uid, int64_t objects_added) {
  SliceFact slice = SliceOf(uid);
  slice.last = ProgressLine{};
  slice.last->objects_added = objects_added;
  history.ObserveSlice(slice, 1);
}

void End(JobHistory& history, const std::string& uid, int64_t puts, int64_t deletes) {
  SliceFact slice = SliceOf(uid);
  slice.record = SliceRecord{};
  slice.record->store.puts = puts;
  slice.record->store.deletes = deletes;
  history.ObserveRecord(slice, 1, 2);
}

TEST(JobHistoryLiveObjects, AreTheMostThatAllFunctionsTogetherHadAtOnce) {
  JobHistory history = WithFunctions();
  EXPECT_EQ(history.live_objects_max(), 0);
  Tell(history, "a", 10);
  Tell(history, "b", -4);
  Tell(history, "a", 12);
  EXPECT_EQ(history.live_objects_max(), 10);
  Tell(history, "a", 16);
  Tell(history, "a", 2);
  EXPECT_EQ(history.live_objects_max(), 12);
}

TEST(JobHistoryLiveObjects, ARecordHasTheLastWordOnItsSlice) {
  JobHistory history = WithFunctions();
  Tell(history, "a", 10);
  End(history, "a", 30, 25);
  End(history, "a", 30, 25);
  Tell(history, "a", 90);
  EXPECT_EQ(history.live_objects_max(), 10);
  Tell(history, "b", 6);
  EXPECT_EQ(history.live_objects_max(), 11);
}

TEST(JobHistoryLiveObjects, WhatALostFunctionHadPutStaysUntilOthersDeleteIt) {
  JobHistory history = WithFunctions();
  Tell(history, "a", 10);
  history.ObserveLostSlice(SliceOf("a"), 2);
  Tell(history, "b", 3);
  EXPECT_EQ(history.live_objects_max(), 13);
}

TEST(JobHistoryLiveObjects, AreCountedOnByTheNextController) {
  JobHistory history = WithFunctions();
  Tell(history, "a", 10);
  Tell(history, "a", 4);
  std::optional<JobHistory> read = JobHistory::FromJson(history.ToJson());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->live_objects_max(), 10);
  Tell(*read, "a", 5);
  Tell(*read, "b", 6);
  EXPECT_EQ(read->live_objects_max(), 11);
}

TEST(JobHistory, ALongCurveIsThinnedAndKeepsItsEnd) {
  Json json = WithFunctions().ToJson();
  for (int i = 0; i < 1001; ++i) json["iterations"].push_back({i, 0, 0.5, 1.0});
  const JobHistory history = JobHistory::FromJson(json).value();
  const std::string whole = history.ToJson().dump();
  EXPECT_EQ(EncodeHistory(history, whole.size()), whole);
  const std::string thinned = EncodeHistory(history, whole.size() / 3);
  EXPECT_LE(thinned.size(), whole.size() / 3);
  const JobHistory read = JobHistory::FromJson(ParseJson(thinned).value()).value();
  EXPECT_GT(read.iterations().size(), 200U);
  EXPECT_EQ(read.iterations().rbegin()->first, 1000);
  EXPECT_EQ(read.functions().size(), 2U);
  EXPECT_EQ(EncodeHistory(history, 100), "") << "not without the functions";
}

}  // namespace
}  // namespace lambdadnn
