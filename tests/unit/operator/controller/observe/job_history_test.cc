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
  SliceRecord record;
  record.store.puts = puts;
  record.store.deletes = deletes;
  slice.record = std::make_shared<const SliceRecord>(record);
  history.ObserveRecord(slice, {}, 2);
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

TEST(JobHistoryStretches, BeginWhereTheJobsTimeStoodStill) {
  const WallTime start(std::chrono::seconds(1'700'000'000));
  const auto after = [&](double seconds) { return start + FromSeconds(seconds); };
  JobHistory history;
  history.ObserveTime(0.5, after(0.5));
  history.ObserveTime(10, after(10));
  history.ObserveTime(20, after(21));  // start times have whole seconds
  ASSERT_EQ(history.stretches().size(), 1u);
  EXPECT_EQ(history.stretches()[0].active, 0.5);
  const int64_t changes = history.changes();
  history.ObserveTime(21, after(500));
  history.ObserveTime(30, after(509));
  ASSERT_EQ(history.stretches().size(), 2u);
  EXPECT_EQ(history.stretches()[1].active, 21);
  EXPECT_EQ(history.stretches()[1].wall, after(500));
  EXPECT_GT(history.changes(), changes);
  const std::optional<JobHistory> read = JobHistory::FromJson(history.ToJson());
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->stretches().size(), 2u);
  EXPECT_EQ(read->stretches()[1].wall, after(500));
  for (int i = 0; i < 1000; ++i) history.ObserveTime(40 + i, after(1000 * (i + 1)));
  EXPECT_EQ(history.stretches().size(), 256u);
  EXPECT_EQ(history.stretches().back().active, 1039);
}

// Whoever may write to the store may have written it.
TEST(JobHistoryStretches, OddOnesMakeAHistoryUnreadable) {
  for (const char* stretches :
       {"[7]", "[[]]", "[[1]]", "[[1, \"a\"]]", "[[null, 1]]", "[[1, -1]]", "[[1, 1e300]]"}) {
    Json json = WithFunctions().ToJson();
    json["stretches"] = Json::parse(stretches);
    EXPECT_FALSE(JobHistory::FromJson(json).has_value()) << stretches;
  }
  Json many = WithFunctions().ToJson();
  for (int i = 0; i < 257; ++i) many["stretches"].push_back({i, 1'700'000'000 + 10 * i});
  EXPECT_FALSE(JobHistory::FromJson(many).has_value());
  many["stretches"].erase(many["stretches"].begin());
  EXPECT_TRUE(JobHistory::FromJson(many).has_value());
  Json older = WithFunctions().ToJson();
  older.erase("stretches");
  EXPECT_TRUE(JobHistory::FromJson(older).has_value());
}

// Of one slice; every phase took as many seconds, and half of it on the processor.
void EndAfter(JobHistory& history, const Role& role, int64_t first_iteration, double seconds,
              bool leads = false) {
  SliceFact slice = SliceOf("a");
  slice.invocation = role.Name() + std::to_string(first_iteration);
  slice.role = role;
  slice.first_iteration = first_iteration;
  SliceRecord record;
  for (PhaseUsage& usage : record.phases.phases) usage = {seconds, seconds / 2, 0.25, 3};
  record.latencies[RequestKind::kGet].Add(seconds);
  if (leads) record.checkpoint.emplace();
  slice.record = std::make_shared<const SliceRecord>(record);
  history.ObserveRecord(slice, {.workers = 2, .servers = 4, .first_iteration = 10}, 1);
}

TEST(JobHistoryPhases, AreMeansOverTheFunctionsOfARoleAndSumsOfRequests) {
  JobHistory history = WithFunctions();
  EndAfter(history, {RoleKind::kProfile, 0, {}}, 0, 1000);
  for (const int64_t first : {10, 50}) {
    EndAfter(history, {RoleKind::kWorker, 0, {}}, first, 4);
    EndAfter(history, {RoleKind::kWorker, 1, {}}, first, 8);
  }
  EndAfter(history, {RoleKind::kServer, 0, {}}, 10, 12, true);
  EndAfter(history, {RoleKind::kServer, 1, {}}, 10, 4);
  const auto expect = [](const JobHistory& told) {
    EXPECT_EQ(told.times_spent().workers[Phase::kWait], (PhaseUsage{12, 6, 0.5, 12}));
    EXPECT_EQ(told.server_phases()[Phase::kMerge], (PhaseUsage{4, 2, 0.125, 6}));
    EXPECT_EQ(told.times_spent().reload, 6) << "of the slices from iteration 50";
    EXPECT_EQ(told.times_spent().checkpoint, 2 * 4 + 12) << "of worker 0 and of who leads";
    EXPECT_EQ(told.latencies()[RequestKind::kGet].Count(), 7);
  };
  expect(history);
  expect(JobHistory::FromJson(history.ToJson()).value());
}

TEST(JobHistoryPhases, OfWhatRunsAreToldUpToThePredictionsIteration) {
  JobHistory history = WithFunctions();
  EndAfter(history, {RoleKind::kWorker, 0, {}}, 10, 4);
  EndAfter(history, {RoleKind::kWorker, 1, {}}, 10, 8);
  EXPECT_FALSE(history.times_before().has_value());
  SliceFact slice = SliceOf("b");
  slice.first_iteration = 50;
  slice.told_phases = ToldPhases{150, {}};
  for (PhaseUsage& usage : slice.told_phases->phases.phases) usage.wall_seconds = 20;
  SliceFact other = slice;
  slice.role = {RoleKind::kWorker, 0, {}};
  other.role = {RoleKind::kWorker, 1, {}};
  const PredictedFrom begin = {100, 7, 0.5};
  history.ObservePrediction(begin, {&slice, &other}, 2);
  const auto expect = [&](const JobHistory& told) {
    ASSERT_TRUE(told.times_before().has_value());
    EXPECT_EQ(told.times_before()->begin, begin);
    const TimesSpent& spent = told.times_before()->spent;
    for (const Phase each : {Phase::kCompute, Phase::kPush, Phase::kWait, Phase::kPull}) {
      EXPECT_EQ(spent.workers[each].wall_seconds, 6 + 10) << "half of its iterations";
    }
    EXPECT_EQ(spent.workers[Phase::kLoad].wall_seconds, 6 + 20);
    EXPECT_EQ(spent.workers[Phase::kEvaluate].wall_seconds, 6 + 20);
    EXPECT_EQ(spent.checkpoint, 4 + 20) << "of worker 0";
  };
  expect(history);
  expect(JobHistory::FromJson(history.ToJson()).value());
  history.ForgetPrediction();
  EXPECT_FALSE(JobHistory::FromJson(history.ToJson())->times_before().has_value());
}

TEST(JobHistoryMemory, IsTheMostOfAnyFunctionUnderTheNewestPlan) {
  JobHistory history = WithFunctions();
  const auto use = [&](const Role& role, int revision, int64_t bytes) {
    SliceFact slice = SliceOf("a");
    slice.invocation = role.Name() + std::to_string(bytes);
    slice.role = role;
    slice.plan_revision = revision;
    SliceRecord record;
    record.max_rss_bytes = bytes;
    slice.record = std::make_shared<const SliceRecord>(record);
    history.ObserveRecord(slice, {}, 1);
  };
  use({RoleKind::kProfile, 0, {}}, 0, 900);
  use({RoleKind::kWorker, 0, {}}, 1, 500);
  use({RoleKind::kWorker, 0, {}}, 2, 200);
  use({RoleKind::kWorker, 1, {}}, 2, 300);
  use({RoleKind::kWorker, 1, {}}, 1, 400);  // that was late
  use({RoleKind::kServer, 0, {}}, 2, 50);
  const PeakMemory expected = {.plan_revision = 2, .worker_bytes = 300, .server_bytes = 50};
  EXPECT_EQ(history.peak_memory(), expected);
  EXPECT_EQ(JobHistory::FromJson(history.ToJson())->peak_memory(), expected);
}

TEST(JobHistoryBadSamples, AreThoseOfEachWorkerOnceUnderTheNewestPlan) {
  JobHistory history;
  const auto end = [&](RoleKind kind, int rank, int revision, int slice_number, double bad) {
    SliceFact slice = SliceOf("a");
    slice.invocation = std::to_string(revision) + "." + std::to_string(slice_number);
    slice.role.kind = kind;
    slice.role.rank = rank;
    slice.plan_revision = revision;
    SliceRecord record;
    if (bad > 0) record.metrics[kBadSamplesMetric] = bad;
    slice.record = std::make_shared<const SliceRecord>(record);
    history.ObserveRecord(slice, {}, 2);
  };
  EXPECT_EQ(history.bad_samples(), 0);
  end(RoleKind::kWorker, 0, 1, 1, 3);
  end(RoleKind::kWorker, 1, 1, 2, 4);
  end(RoleKind::kWorker, 0, 1, 3, 3);  // the next slice, of the same samples
  end(RoleKind::kServer, 0, 1, 4, 9);
  EXPECT_EQ(history.bad_samples(), 7);
  const auto read = JobHistory::FromJson(history.ToJson());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->bad_samples(), 7);
  end(RoleKind::kWorker, 0, 2, 5, 0);
  EXPECT_EQ(history.bad_samples(), 0);
  end(RoleKind::kWorker, 2, 2, 6, 7);
  end(RoleKind::kWorker, 1, 1, 7, 4);  // late
  EXPECT_EQ(history.bad_samples(), 7);
}

TEST(JobHistoryPhases, OfAnEarlierOperatorAreNotTold) {
  Json json = WithFunctions().ToJson();
  for (const char* name : {"workerPhases", "serverPhases", "latencies", "reloadSeconds"}) {
    json.erase(name);
  }
  json["phases"] = {1, 2, 3, 4, 5, 6};
  const auto history = JobHistory::FromJson(json);
  ASSERT_TRUE(history.has_value());
  EXPECT_EQ(history->times_spent().workers, PhaseUsages{});
  json["workerPhases"]["compute"]["wallSeconds"] = -1;
  EXPECT_FALSE(JobHistory::FromJson(json).has_value());
}

TEST(JobHistory, WhatATraceTellsOfASliceIsKept) {
  JobHistory history = WithFunctions();
  SliceFact slice = SliceOf("a");
  slice.plan_revision = 2;
  slice.incarnation = 3;
  slice.attempt = 4;
  SliceRecord record;
  record.outcome = SliceOutcome::kFailed;
  record.error = DataLossError("damaged");
  record.checkpoint.emplace().iteration = 70;
  slice.record = std::make_shared<const SliceRecord>(record);
  history.ObserveRecord(slice, {}, 2);
  const JobHistory read = JobHistory::FromJson(history.ToJson()).value();
  const SliceEntry& entry = read.functions().at(slice.instance_uid).slices.at(slice.invocation);
  EXPECT_EQ(entry.plan_revision, 2);
  EXPECT_EQ(entry.incarnation, 3);
  EXPECT_EQ(entry.attempt, 4);
  EXPECT_EQ(entry.error, "DATA_LOSS");
  EXPECT_EQ(entry.checkpoint, 70);
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
      SliceRecord record;
      record.phases[Phase::kCompute].wall_seconds = 1;
      slice.record = std::make_shared<const SliceRecord>(record);
      EXPECT_TRUE(history.ObserveRecord(slice, {.workers = 10}, time + 900));
      EXPECT_FALSE(history.ObserveRecord(slice, {.workers = 10}, time + 900)) << "counted once";
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

TEST(JobHistory, EstimatesAreKeptAndThinned) {
  JobHistory history;
  for (int i = 1; i <= 5000; ++i) history.ObserveEstimate({i, 0.5 * i, 2500, 10});
  EXPECT_LE(history.estimates().Points().size(), JobHistory::Estimates::kMaxPoints);
  const JobHistory read = JobHistory::FromJson(history.ToJson()).value();
  EXPECT_GE(read.estimates().Points().size(), history.estimates().Points().size() / 2);
  const EstimatePoint& newest = read.estimates().newest();
  EXPECT_EQ(newest.iteration, 5000);
  EXPECT_EQ(newest.time, 2500);
  EXPECT_EQ(newest.seconds, 2500);
  EXPECT_EQ(newest.deviation, 10);
  Json json = history.ToJson();
  json["estimates"][0][2] = "soon";
  EXPECT_FALSE(JobHistory::FromJson(json).has_value());
  json.erase("estimates");
  EXPECT_TRUE(JobHistory::FromJson(json).has_value()) << "of an earlier operator";
}

TEST(JobHistory, AnEvaluationIsToldOnceByTheLastOfItsParts) {
  JobHistory history;
  ProgressLine line;
  line.evaluation = EvaluationPart{1, 3, 5, 10, 9, {}, {}};
  const Role first{.kind = RoleKind::kWorker, .rank = 0, .position = {}};
  const Role second{.kind = RoleKind::kWorker, .rank = 1, .position = {}};
  EXPECT_FALSE(history.ObserveLine(first, line, 2, 1).evaluation.has_value());
  const auto told = history.ObserveLine(second, line, 2, 2).evaluation;
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->metrics, (TestMetrics{0.3, 0.5, 0.9, {}}));
  EXPECT_FALSE(history.ObserveLine(first, line, 2, 3).evaluation.has_value());
  EXPECT_EQ(history.evaluations().Points().size(), 1U);
  // Kept, and as an earlier version kept it.
  Json json = history.ToJson();
  EXPECT_EQ(JobHistory::FromJson(json)->evaluations().newest().metrics, told->metrics);
  json["evaluations"][0] = {1, 0.3, 0.5, 2.0};
  EXPECT_EQ(JobHistory::FromJson(json)->evaluations().newest().metrics,
            (TestMetrics{0.3, 0.5, {}, {}}));
  for (const char* wrong : {R"([1, "a", 0.5, 2.0])", R"([1, 0.3, 0.5, null])", "[1, 0.3, 0.5]"}) {
    json["evaluations"][0] = Json::parse(wrong);
    EXPECT_FALSE(JobHistory::FromJson(json).has_value()) << wrong;
  }
}

TEST(JobHistory, TheLastSliceEndIsThatOfAllFunctions) {
  JobHistory history;
  EXPECT_EQ(history.LastSliceEnd(), std::nullopt);
  for (const auto& [uid, end] : {std::pair("a", 5.0), std::pair("b", 9.0), std::pair("c", 7.0)}) {
    InstanceFact fact;
    fact.instance.uid = uid;
    history.ObserveInstance(fact, 128, 0);
    EXPECT_EQ(history.LastSliceEnd().has_value(), std::string(uid) != "a") << "it has no slice yet";
    SliceFact slice;
    slice.invocation = uid;
    slice.instance_uid = uid;
    history.ObserveSlice(slice, end);
  }
  EXPECT_EQ(history.LastSliceEnd(), 9.0);
}

}  // namespace
}  // namespace lambdadnn
