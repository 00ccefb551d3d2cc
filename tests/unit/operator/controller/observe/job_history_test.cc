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
  for (int i = 0; i < 401; ++i) json["iterations"].push_back({i, 0, 0.5, 1.0});
  const JobHistory history = JobHistory::FromJson(json).value();
  const std::string whole = history.ToJson().dump();
  EXPECT_EQ(EncodeHistory(history, whole.size()), whole);
  const std::string thinned = EncodeHistory(history, whole.size() / 3);
  EXPECT_LE(thinned.size(), whole.size() / 3);
  const JobHistory read = JobHistory::FromJson(ParseJson(thinned).value()).value();
  EXPECT_GT(read.iterations().Points().size(), 80U);
  EXPECT_EQ(read.iterations().newest().iteration, 400);
  EXPECT_EQ(read.functions().size(), 2U);
  EXPECT_EQ(EncodeHistory(history, 100), "") << "not without the functions";
}

// A month of ten functions whose slices end after a quarter of an hour, one of them killed an hour.
TEST(JobHistory, OfAMonthHoldsWhatATimelineShows) {
  JobHistory history;
  size_t most = 0;
  for (int round = 0; round < 4 * 24 * 30; ++round) {
    const double time = 900.0 * round;
    for (int rank = 0; rank < 10; ++rank) {
      InstanceFact fact;
      fact.instance.uid = rank == 0 ? "killed-" + std::to_string(round / 4) : std::to_string(rank);
      if (rank == 0 && round % 4 == 3) fact.gone = Instant{};
      history.ObserveInstance(fact, 512, time);
      SliceFact slice = SliceOf(fact.instance.uid);
      slice.invocation += "-" + std::to_string(round);
      slice.record = SliceRecord{};
      slice.record->phases.compute = 1;
      EXPECT_TRUE(history.ObserveRecord(slice, 10, time + 900));
      EXPECT_FALSE(history.ObserveRecord(slice, 10, time + 900)) << "counted once";
    }
    size_t entries = history.functions().size();
    for (const auto& [uid, function] : history.functions()) entries += function.slices.size();
    most = std::max(most, entries);
  }
  EXPECT_LE(most, 2100U);
  EXPECT_GE(most, 2000U);
  EXPECT_EQ(history.slices(), 28'800) << "sums are of all";
  EXPECT_LT(history.ToJson().dump().size(), 1'000'000U);
}

TEST(JobHistory, AnEvaluationIsToldOnceByTheLastOfItsParts) {
  JobHistory history;
  ProgressLine line;
  line.evaluation = EvaluationPart{.epoch = 1, .loss_sum = 3, .correct = 5, .samples = 10};
  const Role first{.kind = RoleKind::kWorker, .rank = 0, .position = {}};
  const Role second{.kind = RoleKind::kWorker, .rank = 1, .position = {}};
  EXPECT_FALSE(history.ObserveLine(first, line, 2, 1).evaluation.has_value());
  const auto told = history.ObserveLine(second, line, 2, 2).evaluation;
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->accuracy, 0.5);
  EXPECT_FALSE(history.ObserveLine(first, line, 2, 3).evaluation.has_value());
  EXPECT_EQ(history.evaluations().Points().size(), 1U);
}

}  // namespace
}  // namespace lambdadnn
