// SPDX-License-Identifier: Apache-2.0
// A worker that is killed at any of its requests to the store, or at any frame of its connections,
// and started again in the same round: the others have waited for it, and nothing of what they did
// is done twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "common/objectstore/memory_object_store.h"
#include "common/protocol/object_keys.h"
#include "common/protocol/slice_codec.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/mortal_network.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

class SliceRejoin : public testing::TestWithParam<int> {
 protected:
  // A worker of which every step counts, and that is killed at one of them.
  struct Mortal {
    std::atomic<int64_t> steps{0};
    std::atomic<bool> killed{false};
    std::atomic<int> attempt{1};
    // False = it is dead.
    bool Step(int64_t last) {
      if (steps++ >= last) killed = true;
      return !killed;
    }
  };

  static HarnessJob Job() {
    HarnessJob job;
    job.layers = {1, 3};
    job.shards = 2;
    job.spread = 2;
    job.samples = 3 * 12;
    job.global_batch = 12;
    job.epochs = 2;
    // What workers find of the test set reaches the root, too, of both epochs.
    job.keep_best = TestMetric::kLoss;
    job.early_stopping = {TestMetric::kLoss, 5, 0};
    // With the evaluations, whose checkpoints are never left out: requests do not depend on time.
    job.checkpoint_every = 3;
    job.optimizer.name = OptimizerKind::kAdam;
    job.optimizer.clip_global_norm = 0.5;
    return job;
  }
  // What the servers did, without requests in vain, which depend on time.
  static int64_t ServerRequests(const HarnessResult& result) {
    int64_t requests = 0;
    for (const auto& [role, record] : result.records) {
      if (role.starts_with("server")) requests += record.store.puts + record.store.gets;
    }
    return requests;
  }

  // Whether it was killed before its slice ended.
  bool AwaitKillOrEnd(SliceHarness& harness, const std::string& role,
                      const std::atomic<bool>& killed) {
    for (int64_t index = 0; !killed;) {
      const auto text = harness.Service(role).Line(
          harness.Invocation(role), index, runtime_.clock.Now() + std::chrono::milliseconds(1));
      if (!text.ok() || !text->has_value()) continue;
      ++index;
      const auto line = DecodeSliceLine(**text);
      if (line.ok() && line->has_value() && std::holds_alternative<SliceRecord>(**line)) break;
    }
    return killed;
  }

  static void ExpectFinished(const HarnessResult& result, const std::string& killed_at) {
    for (const auto& [role, record] : result.records) {
      EXPECT_EQ(record.outcome, SliceOutcome::kFinished)
          << role << ", " << killed_at << ": " << record.error.ToString();
      EXPECT_EQ(record.next_iteration, 6) << role;
    }
  }

  // Whether it was killed before its slice ended.
  bool KillAtFrame(const HarnessJob& job, const Role& worker, int64_t at,
                   const std::string& model) {
    MemoryObjectStore store;
    Mortal mortal;
    std::vector<std::unique_ptr<MortalNetwork>> networks;
    SliceHarness harness(runtime_, store, job);
    harness.ConnectFunctions({}, false);
    harness.WrapStores([&](const Role& role, ObjectStore& inner) -> std::unique_ptr<ObjectStore> {
      if (!(role == worker) || mortal.attempt > 1) return BorrowStore(inner);
      auto faulty = std::make_unique<FaultyObjectStore>(inner, runtime_, StoreFaults{});
      faulty->SetScript([&](StoreOperation, std::string_view, bool) {
        return mortal.killed ? InternalError("killed") : OkStatus();
      });
      return faulty;
    });
    harness.WrapNetworks([&](const Role& role, Network& inner) -> Network* {
      if (!(role == worker) || mortal.attempt > 1) return &inner;
      networks.push_back(
          std::make_unique<MortalNetwork>(inner, [&mortal, at] { return mortal.Step(at); }));
      return networks.back().get();
    });
    EXPECT_TRUE(harness.Start(0, std::nullopt).ok());
    // Nobody is started in the place of one that has left its record.
    const std::string record_key = RecordKey(job.Request(worker, 0, std::nullopt).store.prefix,
                                             harness.Invocation(worker.Name()));
    const bool kill =
        AwaitKillOrEnd(harness, worker.Name(), mortal.killed) && !store.Head(record_key).ok();
    if (kill) {
      mortal.attempt = 2;
      EXPECT_TRUE(harness.StartRole(worker, 0, std::nullopt, 2).ok());
    }
    const HarnessResult result = harness.Await();
    ExpectFinished(result, "frame " + std::to_string(at));
    EXPECT_EQ(ModelDigest(store), model) << "frame " << at;
    return kill;
  }

  SystemRuntime runtime_;
};

// Kills the worker of this rank before, or right after, the effect of each of its operations.
TEST_P(SliceRejoin, KilledAtAnyRequestItGoesOnInItsRound) {
  const HarnessJob job = Job();
  const Role worker{RoleKind::kWorker, GetParam(), {}};
  std::string model;
  std::string best;
  int64_t server_requests = 0;
  {
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    const HarnessResult result = harness.Run(0, std::nullopt);
    ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished));
    model = ModelDigest(store);
    best = ModelDigest(store, "model-best.safetensors");
    server_requests = ServerRequests(result);
  }
  int64_t kills = 0;
  for (int64_t at = 0;; ++at) {
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    Mortal mortal;
    harness.WrapStores([&](const Role& role, ObjectStore& inner) -> std::unique_ptr<ObjectStore> {
      if (!(role == worker) || mortal.attempt > 1) return BorrowStore(inner);
      auto faulty = std::make_unique<FaultyObjectStore>(inner, runtime_, StoreFaults{});
      faulty->SetScript([&](StoreOperation, std::string_view, bool) {
        return mortal.Step(at) ? OkStatus() : InternalError("killed");
      });
      return faulty;
    });
    ASSERT_TRUE(harness.Start(0, std::nullopt).ok());
    const bool kill = AwaitKillOrEnd(harness, worker.Name(), mortal.killed);
    if (kill) {
      ++kills;
      mortal.attempt = 2;
      ASSERT_TRUE(harness.StartRole(worker, 0, std::nullopt, 2).ok());
    }
    const HarnessResult result = harness.Await();
    ExpectFinished(result, "call " + std::to_string(at));
    EXPECT_EQ(ModelDigest(store), model) << "call " << at;
    EXPECT_EQ(ModelDigest(store, "model-best.safetensors"), best) << "call " << at;
    EXPECT_EQ(ServerRequests(result), server_requests) << "call " << at;
    if (!kill || HasFailure()) break;
  }
  EXPECT_GT(kills, 40);
}

// The same where gradients and weights are in the memory of those who made them.
TEST_P(SliceRejoin, KilledAtAnyFrameItGoesOnInItsRound) {
  HarnessJob job = Job();
  job.transport = TransportKind::kDirect;
  const Role worker{RoleKind::kWorker, GetParam(), {}};
  MemoryObjectStore undisturbed;
  SliceHarness first(runtime_, undisturbed, job);
  ASSERT_TRUE(first.Run(0, std::nullopt).AllAre(SliceOutcome::kFinished));
  const std::string model = ModelDigest(undisturbed);
  // Most of it is waiting for connections: several at once.
  constexpr int kAtOnce = 8;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> kills{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kAtOnce; ++i) {
    threads.emplace_back([&] {
      while (!HasFailure() && KillAtFrame(job, worker, next++, model)) ++kills;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(kills, 40);
}

INSTANTIATE_TEST_SUITE_P(Ranks, SliceRejoin, testing::Values(0, 2));

}  // namespace
}  // namespace lambdadnn
