// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/job_history.h"

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

}  // namespace
}  // namespace lambdadnn
