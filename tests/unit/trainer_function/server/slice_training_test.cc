// SPDX-License-Identifier: Apache-2.0
// Whole slices of all roles in threads on a memory store: what a controller drives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>

#include "common/checkpoint_index/checkpoint_index.h"
#include "common/objectstore/memory_object_store.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/gate.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr char kJobPrefix[] = "root/team/uid-1";

class SliceTraining : public testing::Test {
 protected:
  // Trains in one slice on a store of its own and returns the model file.
  std::string Model(const HarnessJob& job) {
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    const HarnessResult result = harness.Run(0, std::nullopt);
    EXPECT_TRUE(result.AllAre(SliceOutcome::kFinished)) << Errors(result);
    return ModelDigest(store);
  }

  static std::string Errors(const HarnessResult& result) {
    std::string text;
    for (const auto& [role, record] : result.records)
      text += role + ": " + record.error.ToString() + "\n";
    return text;
  }

  std::optional<CheckpointReference> Newest(ObjectStore& store) {
    return FindNewestCheckpoint(store, kJobPrefix).value();
  }

  SystemRuntime runtime_;
  MemoryObjectStore store_;
};

HarnessJob AdamJob() {
  HarnessJob job;
  job.optimizer.name = OptimizerKind::kAdam;
  job.optimizer.schedule.name = ScheduleKind::kCosine;
  job.optimizer.schedule.warmup_iterations = 3;
  return job;
}

TEST_F(SliceTraining, FourWorkersAndTwoLayersTrainToTheEnd) {
  const HarnessJob job;
  SliceHarness harness(runtime_, store_, job);
  const HarnessResult result = harness.Run(0, std::nullopt);
  for (const auto& [role, record] : result.records) {
    EXPECT_EQ(record.outcome, SliceOutcome::kFinished) << role << ": " << record.error.ToString();
    EXPECT_EQ(record.next_iteration, 14) << role;
  }
  EXPECT_EQ(result.records.size(), 7u);
  EXPECT_NE(ModelDigest(store_), "no model");
  EXPECT_EQ(result.Leader(job).checkpoint, (CheckpointReference{kJobPrefix, 14, 1, 0}));
}

// A store whose requests take a while, so that phases with requests take time.
std::unique_ptr<ObjectStore> SlowStore(Runtime& runtime, ObjectStore& store) {
  auto slow = std::make_unique<FaultyObjectStore>(store, runtime, StoreFaults{});
  slow->SetScript([&runtime](StoreOperation, std::string_view, bool done) -> Status {
    if (!done) runtime.clock.SleepFor(std::chrono::milliseconds(1));
    return OkStatus();
  });
  return slow;
}

TEST_F(SliceTraining, RecordsSayWhatWasSpentInWhichPhase) {
  HarnessJob job;
  job.checkpoint_every = 5;
  job.optimizer.clip_global_norm = 1;
  SliceHarness harness(runtime_, store_, job);
  harness.WrapStores(
      [this](const Role&, ObjectStore& store) { return SlowStore(runtime_, store); });
  const HarnessResult result = harness.Run(0, std::nullopt);
  ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished)) << Errors(result);
  for (const auto& [role, record] : result.records) {
    const PhaseUsages& phases = record.phases;
    EXPECT_NEAR(phases.WallSeconds(), record.wall_seconds, 1e-9) << role;
    const auto took = [&](Phase phase) { return phases[phase].wall_seconds > 0; };
    const bool worker = role.starts_with("worker");
    const bool leads = &record == &result.Leader(job);
    EXPECT_TRUE(took(Phase::kLoad) && took(Phase::kPush) && took(Phase::kWait)) << role;
    EXPECT_EQ(took(Phase::kCompute), worker) << role;
    EXPECT_EQ(took(Phase::kEvaluate), worker) << role;
    EXPECT_EQ(took(Phase::kMerge), !worker) << role;
    EXPECT_EQ(took(Phase::kUpdate), leads) << role << ": the only root";
    int64_t requests = 0;
    double cpu_seconds = 0;
    for (const PhaseUsage& usage : phases.phases) {
      requests += usage.requests;
      cpu_seconds += usage.cpu_seconds;
    }
    EXPECT_EQ(requests, record.store.Requests()) << role;
    EXPECT_LE(cpu_seconds, record.cpu_seconds + 1e-6) << role;
    // A request takes a millisecond or more.
    const LatencyHistogram& put = record.latencies[RequestKind::kPut];
    EXPECT_EQ(put.Count(), record.store.puts) << role;
    EXPECT_GE(put.Mean(), 0.001) << role;
    EXPECT_EQ(record.latencies[RequestKind::kMiss].Count(), record.store.misses) << role;
    EXPECT_GE(phases[Phase::kCheckpoint].requests, leads ? job.shards : 0) << "the last parts";
  }
}

// Not before they are done: the first iteration is told while its pushes are still under way.
TEST_F(SliceTraining, ProgressTellsTheRequestsThatAreCharged) {
  HarnessJob job;
  SliceHarness harness(runtime_, store_, job);
  const HarnessResult result = harness.Run(0, std::nullopt);
  ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished)) << Errors(result);
  const SliceRecord& record = result.Leader(job);
  for (const auto& [role, lines] : result.lines) {
    if (lines.empty() || &result.records.at(role) != &record) continue;
    EXPECT_GT(lines.back().puts, lines.front().puts);
    EXPECT_GT(lines.back().gets, lines.front().gets);
    EXPECT_LE(lines.back().puts, record.store.PricedPuts());
    EXPECT_LE(lines.back().gets, record.store.PricedGets());
  }
}

TEST_F(SliceTraining, TheLossOfEveryIterationComesFromTheLeaderInTimeAndFalls) {
  HarnessJob job;
  job.optimizer.learning_rate = 0.3;
  job.epochs = 4;
  const HarnessResult result = SliceHarness(runtime_, store_, job).Run(0, std::nullopt);
  std::vector<double> losses;
  double seconds = 0;
  for (const auto& [role, lines] : result.lines) {
    for (const ProgressLine& line : lines) {
      if (!line.loss) continue;
      losses.push_back(*line.loss);
      EXPECT_GT(line.seconds.value_or(0), std::exchange(seconds, line.seconds.value_or(0)));
    }
  }
  ASSERT_EQ(losses.size(), 28u);
  EXPECT_LT(losses.back(), losses.front());
}

TEST_F(SliceTraining, EveryTestSampleIsEvaluatedOnceAnEpoch) {
  HarnessJob job;
  job.test_samples = 41;
  SliceHarness harness(runtime_, store_, job);
  const HarnessResult result = harness.Run(0, std::nullopt);
  std::map<int64_t, int64_t> samples;
  for (const auto& [role, record] : result.records) {
    for (const EvaluationPart& part : record.evaluations) samples[part.epoch] += part.samples;
  }
  EXPECT_EQ(samples, (std::map<int64_t, int64_t>{{0, 41}, {1, 41}}));
}

TEST_F(SliceTraining, TheModelIsTheSameForEveryShardCountAndSpread) {
  for (const bool clip : {false, true}) {
    HarnessJob job = AdamJob();
    job.parameters = 5 * 16 * 1024 + 77;  // six blocks
    if (clip) job.optimizer.clip_global_norm = 0.5;
    job.shards = 1;
    const std::string expected = Model(job);
    ASSERT_NE(expected, "no model");
    for (const auto& [shards, spread] :
         std::vector<std::pair<int, int>>{{2, 1}, {5, 1}, {4, 2}, {6, 3}}) {
      job.shards = shards;
      job.spread = spread;
      EXPECT_EQ(Model(job), expected) << "K = " << shards << ", spread " << spread;
    }
  }
}

TEST_F(SliceTraining, TheModelIsTheSameWhereWorkersServe) {
  for (const bool clip : {false, true}) {
    for (const std::vector<int>& layers :
         {std::vector<int>{1, 1}, {1, 4}, {1, 2, 4}, {1, 2, 5}, {1, 2, 4, 8}}) {
      HarnessJob job = AdamJob();
      job.layers = layers;
      job.parameters = 5 * 16 * 1024 + 77;  // six blocks
      if (clip) job.optimizer.clip_global_norm = 0.5;
      const std::string expected = Model(job);
      ASSERT_NE(expected, "no model");
      job.placement = Placement::kWorkers;
      for (const auto& [shards, spread] :
           std::vector<std::pair<int, int>>{{1, 1}, {4, 2}, {6, 6}}) {
        job.shards = shards;
        job.spread = spread;
        EXPECT_EQ(Model(job), expected)
            << layers.size() << " layers, K = " << shards << ", spread " << spread;
      }
    }
  }
}

// Over the store, over connections, and over both where one function is not reached.
TEST_F(SliceTraining, TheModelIsTheSameByEveryTransport) {
  for (const std::vector<int>& layers : {std::vector<int>{1, 3}, {1, 2, 4}}) {
    HarnessJob job = AdamJob();
    job.layers = layers;
    job.shards = 4;
    job.spread = 2;
    job.parameters = 5 * 16 * 1024 + 77;
    job.optimizer.clip_global_norm = 0.5;
    const std::string expected = Model(job);
    ASSERT_NE(expected, "no model");
    job.transport = TransportKind::kDirect;
    for (const Placement placement : {Placement::kDedicated, Placement::kWorkers}) {
      job.placement = placement;
      for (const std::set<std::string>& unreachable :
           {std::set<std::string>{}, {"worker-1"}, {"worker-0", "worker-1", "worker-2"}}) {
        MemoryObjectStore store;
        SliceHarness harness(runtime_, store, job);
        harness.ConnectFunctions(unreachable);
        const HarnessResult result = harness.Run(0, std::nullopt);
        EXPECT_TRUE(result.AllAre(SliceOutcome::kFinished)) << Errors(result);
        EXPECT_EQ(ModelDigest(store), expected)
            << EnumName(placement) << ", " << unreachable.size() << " not reached";
      }
    }
  }
}

TEST_F(SliceTraining, OneFunctionWithItsServerExchangesNothing) {
  HarnessJob job;
  job.layers = {1, 1};
  job.placement = Placement::kWorkers;
  SliceHarness harness(runtime_, store_, job);
  std::atomic<int> exchanged = 0;
  harness.WrapStores([&](const Role&, ObjectStore& store) {
    auto counted = std::make_unique<FaultyObjectStore>(store, runtime_, StoreFaults{});
    counted->SetScript([&](StoreOperation, std::string_view key, bool) -> Status {
      if (key.find("/x/") != std::string_view::npos) ++exchanged;
      return OkStatus();
    });
    return counted;
  });
  const HarnessResult result = harness.Run(0, std::nullopt);
  ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished)) << Errors(result);
  EXPECT_EQ(exchanged, 0);
  EXPECT_EQ(result.records.size(), 1u);
}

TEST_F(SliceTraining, ClippingByGlobalNormChangesTheModel) {
  HarnessJob job = AdamJob();
  job.optimizer.name = OptimizerKind::kSgd;
  const std::string free = Model(job);
  job.optimizer.clip_global_norm = 0.01;
  EXPECT_NE(Model(job), free);
}

TEST_F(SliceTraining, RanksWithoutSamplesAreNoSpecialCase) {
  HarnessJob job;
  job.layers = {1, 3, 9};
  job.samples = 11;
  job.global_batch = 4;  // fewer than workers; the last batch has 3
  EXPECT_NE(Model(job), "no model");
}

// Trains in slices that are stopped `gap` lines after their begin; returns the number of slices.
int TrainInSlices(SliceHarness& harness, std::optional<CheckpointReference> newest,
                  bool same_functions = false) {
  int slices = 0;
  for (bool finished = false; !finished && slices < 50;) {
    const bool goes_on = same_functions && slices > 0;
    EXPECT_TRUE((goes_on ? harness.GoOn(0, *newest) : harness.Start(0, newest)).ok());
    // Some role, a different one each time, is asked to stop at once.
    const Role role =
        harness.job().Roles()[static_cast<size_t>(slices) % harness.job().Roles().size()];
    EXPECT_TRUE(harness.Service(role.Name()).Stop(harness.Invocation(role.Name()), true).ok());
    const HarnessResult result = harness.Await();
    const SliceRecord& leader = result.Leader(harness.job());
    for (const auto& [name, record] : result.records) {
      EXPECT_EQ(record.next_iteration, leader.next_iteration) << name;
      EXPECT_EQ(record.outcome, leader.outcome) << name << record.error.ToString();
    }
    EXPECT_TRUE(leader.checkpoint.has_value());
    newest = leader.checkpoint;
    finished = leader.outcome != SliceOutcome::kStopped;
    ++slices;
  }
  return slices;
}

TEST_F(SliceTraining, SlicesEndTogetherAndGiveTheSameBits) {
  for (const int spread : {1, 2}) {
    HarnessJob job = AdamJob();
    job.buffers = 3;
    job.spread = spread;
    const std::string expected = Model(job);
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    const int slices = TrainInSlices(harness, std::nullopt);
    // A stop is agreed one iteration ahead (two when it begins in another group): 2-4 iterations.
    EXPECT_GE(slices, 4);
    EXPECT_EQ(ModelDigest(store), expected);
  }
}

TEST_F(SliceTraining, FunctionsKeepDataAndModelFromSliceToSlice) {
  const HarnessJob job = AdamJob();
  const std::string expected = Model(job);
  MemoryObjectStore store;
  SliceHarness harness(runtime_, store, job);
  EXPECT_GE(TrainInSlices(harness, std::nullopt, true), 4);
  EXPECT_EQ(ModelDigest(store), expected);
  EXPECT_EQ(harness.datasets_opened(), 4) << "once in each worker";
  EXPECT_EQ(harness.models_made(), 4);
}

// Another function of the round was lost: what those hold that are told to stop is as good.
TEST_F(SliceTraining, FunctionsThatAreStoppedAtOnceKeepTheirDataAndModel) {
  const HarnessJob job = AdamJob();
  const std::string expected = Model(job);
  MemoryObjectStore store;
  SliceHarness harness(runtime_, store, job);
  ASSERT_TRUE(harness.Start(0, std::nullopt).ok());
  // Once all have loaded what they need. Servers below the root say nothing.
  for (const Role& role : job.Roles()) {
    if (role.kind != RoleKind::kWorker) continue;
    const std::string name = role.Name();
    const auto line = harness.Service(name).Line(harness.Invocation(name), 0,
                                                 runtime_.clock.Now() + std::chrono::seconds(10));
    ASSERT_TRUE(line.ok() && line->has_value()) << name;
  }
  for (const Role& role : job.Roles()) {
    const std::string name = role.Name();
    ASSERT_TRUE(harness.Service(name).Stop(harness.Invocation(name), false).ok());
  }
  harness.Await();
  const std::optional<CheckpointReference> newest = Newest(store);
  ASSERT_TRUE(newest.has_value());
  ASSERT_TRUE(harness.GoOn(1, *newest).ok());
  const HarnessResult result = harness.Await();
  EXPECT_TRUE(result.AllAre(SliceOutcome::kFinished)) << Errors(result);
  EXPECT_EQ(ModelDigest(store), expected);
  EXPECT_LE(harness.datasets_opened(), 8);
}

TEST_F(SliceTraining, ABudgetEndsTheSliceInTime) {
  HarnessJob job;
  job.epochs = 100'000;
  job.budget_seconds = 1.0;
  job.parameters = 1000;
  job.shards = 1;
  SliceHarness harness(runtime_, store_, job);
  const Instant begin = runtime_.clock.Now();
  const HarnessResult result = harness.Run(0, std::nullopt);
  EXPECT_LT(ToSeconds(runtime_.clock.Now() - begin), 3);
  EXPECT_TRUE(result.AllAre(SliceOutcome::kStopped)) << Errors(result);
  EXPECT_GT(result.Leader(job).next_iteration, 2);
  EXPECT_EQ(Newest(store_), result.Leader(job).checkpoint);
}

TEST_F(SliceTraining, AKilledSliceFallsBackToItsCheckpointAndGivesTheSameBits) {
  HarnessJob job = AdamJob();
  job.buffers = 3;
  job.checkpoint_every = 3;
  const std::string expected = Model(job);
  SliceHarness harness(runtime_, store_, job);
  int64_t incarnation = 0;
  for (const int64_t kill_after : {4, 7, 11}) {
    ASSERT_TRUE(harness.Start(incarnation, Newest(store_)).ok());
    const CheckpointReference waited = {kJobPrefix, kill_after / 3 * 3, 1, incarnation};
    const Instant give_up = runtime_.clock.Now() + std::chrono::seconds(20);
    while (!ReadManifest(store_, waited).ok() && runtime_.clock.Now() < give_up)
      runtime_.clock.SleepFor(std::chrono::milliseconds(1));
    harness.Kill();
    ++incarnation;
  }
  const HarnessResult result = harness.Run(incarnation, Newest(store_));
  EXPECT_TRUE(result.AllAre(SliceOutcome::kFinished)) << Errors(result);
  EXPECT_EQ(ModelDigest(store_), expected);
}

// Of two roots, each writes its part of the same checkpoints, though one alone is slow.
TEST_F(SliceTraining, AllRootsLeaveOutTheSameCheckpoints) {
  for (const Placement placement : {Placement::kDedicated, Placement::kWorkers}) {
    for (const int slow_shard : {0, 1}) {
      HarnessJob job = AdamJob();
      job.placement = placement;
      job.spread = 2;
      job.epochs = 3;  // 21 iterations
      job.checkpoint_every = 2;
      job.checkpoint_keep = 100;
      const std::string expected = Model(job);
      const std::string held = "/checkpoints/2/r1.i0/s" + std::to_string(slow_shard);
      Gate gate;
      MemoryObjectStore store;
      SliceHarness harness(runtime_, store, job);
      harness.WrapStores([&](const Role&, ObjectStore& of_role) -> std::unique_ptr<ObjectStore> {
        auto wrapped = std::make_unique<FaultyObjectStore>(of_role, runtime_, StoreFaults{});
        wrapped->SetScript([&](StoreOperation operation, std::string_view key, bool done) {
          if (operation != StoreOperation::kPut) return OkStatus();
          if (done && key.find("/11/w/") != std::string_view::npos) gate.Open();
          if (!done && key.ends_with(held)) {
            EXPECT_TRUE(gate.Pass()) << key;
          }
          return OkStatus();
        });
        return wrapped;
      });
      const HarnessResult result = harness.Run(0, std::nullopt);
      ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished)) << Errors(result);
      EXPECT_EQ(ModelDigest(store), expected);
      EXPECT_GE(result.Leader(job).metrics.at(kCheckpointsSkippedMetric), 4) << "4, 6, 8 and 10";
      std::set<int64_t> written;
      for (int64_t iteration = 0; iteration <= 21; ++iteration) {
        const std::string folder = CheckpointsPrefix(kJobPrefix) + std::to_string(iteration) + "/";
        const size_t found = ListAll(store, folder).value().size();
        EXPECT_TRUE(found == 0 || found == 3) << "two parts and a manifest: " << iteration;
        if (found > 0) written.insert(iteration);
      }
      EXPECT_TRUE(written.contains(0) && written.contains(2) && written.contains(21));
      for (const int64_t left_out : {4, 6, 8, 10}) EXPECT_FALSE(written.contains(left_out));
    }
  }
}

TEST_F(SliceTraining, CheckpointsRestoreUnderOtherShardsAndSpread) {
  HarnessJob job = AdamJob();
  job.buffers = 3;
  job.parameters = 5 * 16 * 1024 + 77;
  job.shards = 4;
  job.spread = 2;
  const std::string expected = Model(job);
  SliceHarness first(runtime_, store_, job);
  ASSERT_TRUE(first.Start(0, std::nullopt).ok());
  ASSERT_TRUE(first.Service("worker-1").Stop(first.Invocation("worker-1"), true).ok());
  const HarnessResult stopped = first.Await();
  ASSERT_TRUE(stopped.AllAre(SliceOutcome::kStopped)) << Errors(stopped);
  job.shards = 3;
  job.spread = 1;
  SliceHarness second(runtime_, store_, job);
  const HarnessResult result = second.Run(1, Newest(store_));
  EXPECT_TRUE(result.AllAre(SliceOutcome::kFinished)) << Errors(result);
  EXPECT_EQ(ModelDigest(store_), expected);
}

TEST_F(SliceTraining, RefusalsLostRepliesDelaysAndTornReadsChangeNothing) {
  HarnessJob job = AdamJob();
  job.spread = 2;
  job.optimizer.clip_global_norm = 0.5;
  job.checkpoint_every = 5;
  const std::string expected = Model(job);
  StoreFaults faults;
  faults.refuse = 0.1;
  faults.lose_reply = 0.05;
  faults.delay = 0.05;
  faults.max_delay_seconds = 0.01;
  faults.tear_read = 0.02;
  faults.corrupt_read = 0.02;
  SliceHarness harness(runtime_, store_, job);
  harness.WrapStores([&](const Role&, ObjectStore& store) -> std::unique_ptr<ObjectStore> {
    return std::make_unique<FaultyObjectStore>(store, runtime_, faults);
  });
  const HarnessResult result = harness.Run(0, std::nullopt);
  EXPECT_TRUE(result.AllAre(SliceOutcome::kFinished)) << Errors(result);
  EXPECT_EQ(ModelDigest(store_), expected);
  int64_t retries = 0;
  for (const auto& [role, record] : result.records) retries += record.store.retries;
  EXPECT_GT(retries, 0);
}

TEST_F(SliceTraining, ALossThatIsNotANumberFailsForGoodAndKeepsTheCheckpoint) {
  HarnessJob job;
  job.nan_at_version = 6;
  job.checkpoint_every = 6;
  job.budget_seconds = 4;  // which those who wait for the one that failed use up
  SliceHarness harness(runtime_, store_, job);
  const HarnessResult result = harness.Run(0, std::nullopt);
  const SliceRecord& leader = result.Leader(job);
  EXPECT_EQ(leader.outcome, SliceOutcome::kFailed);
  EXPECT_TRUE(leader.permanent);
  EXPECT_THAT(leader.error.message(), HasSubstr("loss of iteration 6"));
  EXPECT_EQ(leader.checkpoint, (CheckpointReference{kJobPrefix, 6, 1, 0}));
  EXPECT_EQ(Newest(store_), leader.checkpoint);
  EXPECT_FALSE(result.records.at("worker-0").permanent) << "only the cause is permanent";
}

TEST_F(SliceTraining, TrainingEndsOnceAnEpochsLossIsLowEnough) {
  HarnessJob job;
  job.epochs = 50;
  job.optimizer.learning_rate = 0.5;
  job.stop_at_loss = 0.06;
  const std::string expected = Model(job);
  SliceHarness whole(runtime_, store_, job);
  const HarnessResult result = whole.Run(0, std::nullopt);
  const int64_t end = result.Leader(job).next_iteration;
  EXPECT_LT(end, job.MakePlan().iterations);
  EXPECT_EQ(end % 7, 1) << "one iteration after an epoch's end";
  // The same end in slices, also when one ends between the decision and the end.
  MemoryObjectStore store;
  SliceHarness harness(runtime_, store, job);
  TrainInSlices(harness, std::nullopt);
  EXPECT_EQ(ModelDigest(store), expected);
}

// --- what stays behind -------------------------------------------------------------------------

// docs/formats.md, "Garbage".
TEST_F(SliceTraining, OnlyTheLastIterationsObjectsWaitForTheController) {
  HarnessJob job;
  job.shards = 2;
  job.optimizer.clip_global_norm = 1;
  SliceHarness harness(runtime_, store_, job);
  ASSERT_TRUE(harness.Run(0, std::nullopt).AllAre(SliceOutcome::kFinished));
  const auto left = ListAll(store_, ExchangePrefix(kJobPrefix)).value();
  std::vector<std::string> keys;
  for (const ObjectInfo& object : left) keys.push_back(object.key);
  const std::string scope = std::string(kJobPrefix) + "/x/r1.i0/";
  EXPECT_THAT(keys, testing::UnorderedElementsAre(
                        scope + "14/w/s0", scope + "14/w/s1", scope + "13/w/s0", scope + "13/w/s1",
                        scope + "13/n/s0", scope + "13/n/s1", scope + "13/g1/s0/0",
                        scope + "13/g1/s0/1", scope + "13/g1/s1/0", scope + "13/g1/s1/1"));
}

TEST_F(SliceTraining, TheNextSliceDeletesWhatTheLastOneLeft) {
  HarnessJob job = AdamJob();
  SliceHarness harness(runtime_, store_, job);
  EXPECT_GE(TrainInSlices(harness, std::nullopt), 4);
  const auto left = ListAll(store_, ExchangePrefix(kJobPrefix)).value();
  EXPECT_EQ(left.size(), 4u + 4u)
      << "the last two weights, and merged gradients of the last iteration alone";
}

// --- the data stays what it was ---------------------------------------------------------------

TEST_F(SliceTraining, DataThatChangedEndsTheJobBeforeItIsTrainedOn) {
  HarnessJob job;
  job.data_checksum = 0xabc;
  ASSERT_TRUE(
      SliceHarness(runtime_, store_, job).Run(0, std::nullopt).AllAre(SliceOutcome::kFinished));
  const auto before = ListAll(store_, CheckpointsPrefix(kJobPrefix)).value().size();
  job.data_checksum = 0xabd;
  job.epochs = 3;
  SliceHarness changed(runtime_, store_, job);
  ASSERT_TRUE(changed.Start(1, Newest(store_)).ok());
  for (const Role& role : job.Roles()) {
    if (role.kind == RoleKind::kServer) {
      ASSERT_TRUE(changed.Service(role.Name()).Stop(changed.Invocation(role.Name()), false).ok());
    }
  }
  const HarnessResult result = changed.Await();
  for (const Role& role : job.Roles()) {
    if (role.kind != RoleKind::kWorker) continue;
    const SliceRecord& record = result.records.at(role.Name());
    EXPECT_EQ(record.outcome, SliceOutcome::kFailed);
    EXPECT_TRUE(record.permanent);
    EXPECT_THAT(record.error.message(), HasSubstr("the data set memory:data"));
    EXPECT_THAT(record.error.message(), HasSubstr("put the data back"));
  }
  EXPECT_EQ(ListAll(store_, CheckpointsPrefix(kJobPrefix)).value().size(), before);
}

TEST_F(SliceTraining, TheSameDataGoesOnAndOfAnotherRevisionNothingIsKnown) {
  HarnessJob job = AdamJob();
  job.data_checksum = 0xabc;
  SliceHarness harness(runtime_, store_, job);
  EXPECT_GE(TrainInSlices(harness, std::nullopt), 4);
  const std::string note = std::string(kJobPrefix) + "/records/data.r1.worker-2";
  ASSERT_TRUE(store_.Head(note).ok());
  // A damaged record counts as absent.
  ASSERT_TRUE(store_.Put(note, AsBytes("0000000000000abc0000000000000000")).ok());
  ASSERT_TRUE(
      SliceHarness(runtime_, store_, job).Run(1, std::nullopt).AllAre(SliceOutcome::kFinished));
  EXPECT_EQ(store_.Get(note).value().size(), 32u);
  EXPECT_TRUE(AsText(store_.Get(note).value()).starts_with("0000000000000abc"));
}

// --- fencing ------------------------------------------------------------------------------------

TEST_F(SliceTraining, AZombieOfAnOlderIncarnationChangesNothing) {
  HarnessJob job = AdamJob();
  job.checkpoint_every = 4;
  job.epochs = 6;
  const std::string expected = Model(job);
  // Incarnation 0 goes on, unseen by its operator, while incarnation 1 starts over beside it.
  // It may wait for what the other deletes, until its time is up.
  HarnessJob gone = job;
  gone.budget_seconds = 2;
  SliceHarness zombie(runtime_, store_, gone);
  ASSERT_TRUE(zombie.Start(0, std::nullopt).ok());
  SliceHarness heir(runtime_, store_, job);
  const HarnessResult result = heir.Run(1, std::nullopt);
  EXPECT_TRUE(result.AllAre(SliceOutcome::kFinished)) << Errors(result);
  zombie.Await();
  EXPECT_EQ(ModelDigest(store_), expected);
  EXPECT_EQ(result.Leader(job).checkpoint->incarnation, 1);
}

}  // namespace
}  // namespace lambdadnn
