// SPDX-License-Identifier: Apache-2.0
// What follows of evaluations, through whole slices: when training ends early, and which model is
// kept as the best; the same however slices end and whatever is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint_index/checkpoint_index.h"
#include "common/objectstore/memory_object_store.h"
#include "common/protocol/object_keys.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kOfJob[] = "root/team/uid-1";
constexpr char kBest[] = "model-best.safetensors";
constexpr int64_t kEpoch = 7;  // iterations of one epoch of HarnessJob

class SliceEvaluation : public testing::Test {
 protected:
  struct Outcome {
    int64_t end = 0;
    std::string last;
    std::string best;
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };
  static Outcome OutcomeOf(ObjectStore& store, int64_t end) {
    return {end, ModelDigest(store), ModelDigest(store, kBest)};
  }

  Outcome InOneSlice(const HarnessJob& job) {
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    const HarnessResult result = harness.Run(0, std::nullopt);
    EXPECT_TRUE(result.AllAre(SliceOutcome::kFinished));
    return OutcomeOf(store, result.Leader(job).next_iteration);
  }

  // One role after the other asks for the end of a slice as soon as it has begun.
  Outcome InManySlices(const HarnessJob& job) {
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    std::optional<CheckpointReference> newest;
    for (size_t slice = 0;; ++slice) {
      EXPECT_TRUE(harness.Start(0, newest).ok());
      const std::string role = job.Roles()[slice % job.Roles().size()].Name();
      EXPECT_TRUE(harness.Service(role).Stop(harness.Invocation(role), true).ok());
      const HarnessResult result = harness.Await();
      const SliceRecord& leader = result.Leader(job);
      newest = leader.checkpoint;
      if (leader.outcome == SliceOutcome::kStopped && !HasFailure()) continue;
      EXPECT_GT(slice, 3u);
      return OutcomeOf(store, leader.next_iteration);
    }
  }

  // All functions are killed again and again, once a checkpoint lies a few iterations further.
  Outcome KilledAgainAndAgain(const HarnessJob& job, int64_t step) {
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    for (int64_t incarnation = 0;; ++incarnation) {
      const auto newest = FindNewestCheckpoint(store, kOfJob).value();
      const int64_t begun_at = newest.has_value() ? newest->iteration : 0;
      EXPECT_TRUE(harness.Start(incarnation, newest).ok());
      const Instant give_up = runtime_.clock.Now() + std::chrono::seconds(20);
      const auto is_further = [&] {
        const auto now = FindNewestCheckpoint(store, kOfJob).value();
        return now.has_value() && now->iteration >= begun_at + step;
      };
      while (!is_further() && ModelDigest(store) == "no model" && runtime_.clock.Now() < give_up) {
        runtime_.clock.SleepFor(std::chrono::milliseconds(1));
      }
      if (ModelDigest(store) == "no model" && incarnation < 20) {
        harness.Kill();
        continue;
      }
      const HarnessResult result = harness.Await();
      EXPECT_TRUE(result.AllAre(SliceOutcome::kFinished));
      EXPECT_GT(incarnation, 1);
      return OutcomeOf(store, result.Leader(job).next_iteration);
    }
  }

  SystemRuntime runtime_;
};

// Its loss falls for some epochs, and then hardly.
HarnessJob ConvergingJob() {
  HarnessJob job;
  job.parameters = 16 * 1024 + 100;
  job.epochs = 12;
  job.optimizer.learning_rate = 0.25;
  job.early_stopping = {TestMetric::kLoss, 2, 1e-4};
  job.keep_best = TestMetric::kLoss;
  job.checkpoint_every = 3;
  return job;
}

// Each step goes further over the minimum than the one before.
HarnessJob DivergingJob() {
  HarnessJob job;
  job.parameters = 16 * 1024 + 100;
  job.epochs = 3;
  job.optimizer.learning_rate = 2.125;
  job.keep_best = TestMetric::kLoss;
  return job;
}

TEST_F(SliceEvaluation, TheTestSetIsEvaluatedEverySoManyEpochsAndAtTheEnd) {
  HarnessJob job;
  job.epochs = 5;
  job.evaluate_every = 2;
  MemoryObjectStore store;
  SliceHarness harness(runtime_, store, job);
  const HarnessResult result = harness.Run(0, std::nullopt);
  ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished));
  for (const auto& [role, record] : result.records) {
    if (!role.starts_with("worker")) continue;
    std::vector<int64_t> epochs;
    for (const EvaluationPart& part : record.evaluations) epochs.push_back(part.epoch);
    EXPECT_THAT(epochs, ElementsAre(1, 3, 4)) << role;
  }
}

// Decided again from what the workers' records say.
TEST_F(SliceEvaluation, AllFunctionsStopTwoIterationsAfterTheEvaluationThatDecides) {
  const HarnessJob job = ConvergingJob();
  MemoryObjectStore store;
  SliceHarness harness(runtime_, store, job);
  const HarnessResult result = harness.Run(0, std::nullopt);
  ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished));
  EvaluationProgress progress;
  int64_t decided = 0;
  for (size_t epoch = 0; decided == 0; ++epoch) {
    EvaluationPart sum;
    for (const char* worker : {"worker-0", "worker-1", "worker-2", "worker-3"}) {
      ASSERT_LT(epoch, result.records.at(worker).evaluations.size());
      sum += result.records.at(worker).evaluations[epoch];
    }
    const int64_t version = static_cast<int64_t>(epoch + 1) * kEpoch;
    progress.Count(version, sum.Metrics(), job.early_stopping, job.keep_best);
    if (progress.MustStop(*job.early_stopping)) decided = version;
  }
  EXPECT_GT(decided, 3 * kEpoch) << "not at once";
  EXPECT_LT(decided, job.MakePlan().iterations - kEpoch) << "early";
  for (const auto& [role, record] : result.records) EXPECT_EQ(record.next_iteration, decided + 2);
  const SliceRecord& first = result.records.at("worker-0");
  EXPECT_EQ(first.metrics.at(kBestIterationMetric), static_cast<double>(progress.best_version));
  EXPECT_EQ(first.metrics.at(kBestValueMetric), *progress.best);
}

TEST_F(SliceEvaluation, TheEndAndTheBestAreTheSameInSlicesAndAfterKills) {
  const HarnessJob job = ConvergingJob();
  const Outcome expected = InOneSlice(job);
  EXPECT_LT(expected.end, job.MakePlan().iterations);
  EXPECT_NE(expected.best, "no model");
  EXPECT_EQ(InManySlices(job), expected);
  EXPECT_EQ(KilledAgainAndAgain(job, 9), expected);
}

TEST_F(SliceEvaluation, TheEndIsTheSameForEveryPlacementTransportAndTree) {
  HarnessJob job = ConvergingJob();
  const Outcome expected = InOneSlice(job);
  for (const int shards : {1, 2}) {
    job.shards = shards;
    job.spread = shards > 1 ? 2 : 1;
    EXPECT_EQ(InOneSlice(job), expected) << shards;
  }
  job.spread = 1;
  job.placement = Placement::kWorkers;
  EXPECT_EQ(InOneSlice(job), expected) << "workers serve";
  job.transport = TransportKind::kDirect;
  EXPECT_EQ(InOneSlice(job), expected) << "Direct";
}

TEST_F(SliceEvaluation, TheBestModelIsThatOfItsEpoch) {
  const HarnessJob job = DivergingJob();
  const Outcome outcome = InOneSlice(job);
  HarnessJob one_epoch = job;
  one_epoch.epochs = 1;
  const Outcome first = InOneSlice(one_epoch);
  EXPECT_EQ(outcome.best, first.last) << "the first evaluation is the best";
  EXPECT_NE(outcome.last, outcome.best);
  EXPECT_EQ(first.best, first.last) << "the last one counts, too";
  EXPECT_EQ(InManySlices(job), outcome);
}

// A part of it, its manifest, or the manifest that names it.
TEST_F(SliceEvaluation, ADamagedBestCheckpointCostsTheBestModelAlone) {
  const HarnessJob job = DivergingJob();
  const Outcome expected = InOneSlice(job);
  const std::string best = "/" + std::to_string(kEpoch) + "/";
  const std::string last = "/" + std::to_string(3 * kEpoch) + "/";
  struct Row {
    std::string folder;
    std::string name;
    int64_t told;
  };
  for (const Row& row : {Row{best, "/s1", kEpoch}, Row{best, "manifest", kEpoch},
                         Row{last, "manifest", 3 * kEpoch}}) {
    SCOPED_TRACE(row.folder + row.name);
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    bool hit = false;
    harness.WrapStores([&](const Role& role, ObjectStore& of_role) -> std::unique_ptr<ObjectStore> {
      if (role.kind != RoleKind::kWorker || role.rank != 0) return BorrowStore(of_role);
      auto wrapped = std::make_unique<FaultyObjectStore>(of_role, runtime_, StoreFaults{});
      wrapped->SetScript([&](StoreOperation operation, std::string_view key, bool done) -> Status {
        const bool it = key.find("/checkpoints/") != std::string_view::npos &&
                        key.find(row.folder) != std::string_view::npos &&
                        key.find(row.name) != std::string_view::npos;
        if (operation != StoreOperation::kGet || !it || !done) return OkStatus();
        hit = true;
        return DataLossError("bytes have turned");
      });
      return wrapped;
    });
    const HarnessResult result = harness.Run(0, std::nullopt);
    ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished));
    EXPECT_TRUE(hit);
    const auto& metrics = result.records.at("worker-0").metrics;
    EXPECT_EQ(metrics.at(kBestDamagedMetric), static_cast<double>(row.told));
    EXPECT_FALSE(metrics.contains(kBestIterationMetric));
    EXPECT_EQ(ModelDigest(store), expected.last);
    EXPECT_EQ(ModelDigest(store, kBest), "no model");
  }
}

// Of the older ones only the best stays, whatever its age.
TEST_F(SliceEvaluation, TheCheckpointOfTheBestModelOutlivesOlderOnes) {
  HarnessJob job = DivergingJob();
  job.checkpoint_every = 2;
  job.checkpoint_keep = 1;
  // Where writing one takes longer than the iterations up to the next, others are left out.
  for (const auto takes : {std::chrono::milliseconds(0), std::chrono::milliseconds(10)}) {
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    harness.WrapStores([&](const Role&, ObjectStore& of_role) -> std::unique_ptr<ObjectStore> {
      auto wrapped = std::make_unique<FaultyObjectStore>(of_role, runtime_, StoreFaults{});
      wrapped->SetScript([&](StoreOperation operation, std::string_view key, bool done) {
        const bool part = key.find("/checkpoints/") != std::string_view::npos;
        if (operation == StoreOperation::kPut && part && !done) runtime_.clock.SleepFor(takes);
        return OkStatus();
      });
      return wrapped;
    });
    ASSERT_TRUE(harness.Run(0, std::nullopt).AllAre(SliceOutcome::kFinished));
    std::vector<int64_t> iterations;
    const auto kept = ListCheckpoints(store, kOfJob).value();
    for (const CheckpointReference& each : kept) iterations.push_back(each.iteration);
    EXPECT_THAT(iterations, ElementsAre(3 * kEpoch, kEpoch));
  }
}

TEST_F(SliceEvaluation, OfEvaluationsNothingStaysInTheStore) {
  MemoryObjectStore store;
  SliceHarness harness(runtime_, store, ConvergingJob());
  ASSERT_TRUE(harness.Run(0, std::nullopt).AllAre(SliceOutcome::kFinished));
  const auto left = ListAll(store, ExchangePrefix(kOfJob)).value();
  for (const ObjectInfo& object : left) {
    EXPECT_EQ(object.key.find("/e/"), std::string::npos) << object.key;
  }
}

TEST_F(SliceEvaluation, WithoutATestSetNothingCanBeDecided) {
  HarnessJob job = ConvergingJob();
  job.test_samples = 0;
  MemoryObjectStore store;
  SliceHarness harness(runtime_, store, job);
  ASSERT_TRUE(harness.Start(0, std::nullopt).ok());
  const std::string role = "worker-1";
  const auto last = [&]() -> std::string {
    const auto line = harness.Service(role).Line(harness.Invocation(role), 0,
                                                 runtime_.clock.Now() + std::chrono::seconds(10));
    return line.ok() && line->has_value() ? **line : "";
  }();
  EXPECT_THAT(last, HasSubstr("spec.training.earlyStopping needs a test set"));
  EXPECT_THAT(last, HasSubstr("\"permanent\":true"));
  harness.Kill();
}

}  // namespace
}  // namespace lambdadnn
