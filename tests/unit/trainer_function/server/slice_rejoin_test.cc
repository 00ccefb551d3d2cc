// SPDX-License-Identifier: Apache-2.0
// A worker that is killed at any of its requests to the store and started again in the same round:
// the others have waited for it, and nothing of what they did is done twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "common/objectstore/memory_object_store.h"
#include "common/protocol/slice_codec.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/slice_harness.h"

namespace lambdadnn {
namespace {

class SliceRejoin : public testing::TestWithParam<int> {
 protected:
  static HarnessJob Job() {
    HarnessJob job;
    job.layers = {1, 3};
    job.shards = 2;
    job.spread = 2;
    job.samples = 6 * 12;
    job.global_batch = 12;
    job.epochs = 1;
    job.checkpoint_every = 2;
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
      const auto text = harness.Service(role).Line(harness.Invocation(role), index,
                                                   clock_.Now() + std::chrono::milliseconds(1));
      if (!text.ok() || !text->has_value()) continue;
      ++index;
      const auto line = DecodeSliceLine(**text);
      if (line.ok() && line->has_value() && std::holds_alternative<SliceRecord>(**line)) break;
    }
    return killed;
  }

  SystemClock clock_;
  ThreadExecutor executor_;
  SystemRandom random_;
  Runtime runtime_{clock_, executor_, random_};
};

// Kills the worker of this rank before, or right after, the effect of each of its operations.
TEST_P(SliceRejoin, KilledAtAnyRequestItGoesOnInItsRound) {
  const HarnessJob job = Job();
  const Role worker{RoleKind::kWorker, GetParam(), {}};
  std::string model;
  int64_t server_requests = 0;
  {
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    const HarnessResult result = harness.Run(0, std::nullopt);
    ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished));
    model = ModelDigest(store);
    server_requests = ServerRequests(result);
  }
  int64_t kills = 0;
  for (int64_t at = 0;; ++at) {
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    std::atomic<int64_t> calls{0};
    std::atomic<bool> killed{false};
    std::atomic<int> attempt{1};
    harness.WrapStores([&](const Role& role, ObjectStore& inner) -> std::unique_ptr<ObjectStore> {
      if (!(role == worker) || attempt > 1) return BorrowStore(inner);
      auto faulty = std::make_unique<FaultyObjectStore>(inner, runtime_, StoreFaults{});
      faulty->SetScript([&](StoreOperation, std::string_view, bool) -> Status {
        if (calls++ >= at) killed = true;
        return killed ? InternalError("killed") : OkStatus();
      });
      return faulty;
    });
    ASSERT_TRUE(harness.Start(0, std::nullopt).ok());
    const bool kill = AwaitKillOrEnd(harness, worker.Name(), killed);
    if (kill) {
      ++kills;
      attempt = 2;
      ASSERT_TRUE(harness.StartRole(worker, 0, std::nullopt, 2).ok());
    }
    const HarnessResult result = harness.Await();
    for (const auto& [role, record] : result.records) {
      EXPECT_EQ(record.outcome, SliceOutcome::kFinished)
          << role << ", call " << at << ": " << record.error.ToString();
      EXPECT_EQ(record.next_iteration, 6) << role;
    }
    EXPECT_EQ(ModelDigest(store), model) << "call " << at;
    EXPECT_EQ(ServerRequests(result), server_requests) << "call " << at;
    if (!kill || HasFailure()) break;
  }
  EXPECT_GT(kills, 40);
}

INSTANTIATE_TEST_SUITE_P(Ranks, SliceRejoin, testing::Values(0, 2));

}  // namespace
}  // namespace lambdadnn
