// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/session/slice_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/role_bench.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 7 iterations an epoch, two epochs.
struct SessionBench : RoleBench {
  explicit SessionBench(std::optional<CheckpointReference> start = std::nullopt)
      : RoleBench(HarnessJob{}, Role{RoleKind::kWorker, 0, {}}, std::move(start)) {}

  // What was iterated, and what was told completed.
  Status Run(const std::function<Status(int64_t)>& iterate = {}) {
    return session().RunIterations(
        [&](int64_t iteration) {
          session().StopInTime();
          iterated.push_back(iteration);
          return iterate ? iterate(iteration) : OkStatus();
        },
        [&](int64_t done, double) {
          completed.push_back(done);
          return OkStatus();
        });
  }
  std::vector<int64_t> iterated, completed;
};

TEST(SliceSession, RunsToThePlansEnd) {
  SessionBench bench;
  ASSERT_TRUE(bench.WriteCheckpoint(0, 1).ok());
  ASSERT_TRUE(bench.session().Begin().ok());
  ASSERT_TRUE(bench.Run().ok());
  EXPECT_EQ(std::ssize(bench.iterated), 14);
  EXPECT_EQ(bench.iterated.front(), 0);
  EXPECT_EQ(bench.completed.back(), 14);
  EXPECT_EQ(bench.session().record().next_iteration, 14);
  const std::vector<float> weights = {1, 2};
  bench.session().End(weights);
  EXPECT_EQ(bench.session().record().outcome, SliceOutcome::kFinished);
  EXPECT_EQ(bench.session().record().state_digest,
            Hex64(Xxh3(AsBytes(std::span<const float>(weights)))));
}

TEST(SliceSession, WhoHoldsNoWeightsTellsNoDigest) {
  SessionBench bench;
  ASSERT_TRUE(bench.WriteCheckpoint(0, 1).ok());
  ASSERT_TRUE(bench.session().Begin().ok());
  bench.session().End({});
  EXPECT_EQ(bench.session().record().state_digest, "");
}

TEST(SliceSession, EndsWhereTheRootTellsIt) {
  SessionBench bench;
  ASSERT_TRUE(bench.WriteCheckpoint(0, 1).ok());
  ASSERT_TRUE(bench.session().Begin().ok());
  bench.stop_wanted = [&] { return bench.iterated.size() == 2; };
  ASSERT_TRUE(bench
                  .Run([&](int64_t iteration) {
                    // As the root of shard 0 does with what it makes.
                    bench.session().agreement().Answer(iteration + 1);
                    return OkStatus();
                  })
                  .ok());
  // Asked in iteration 2, whose weights tell it: iteration 3 is the last.
  EXPECT_THAT(bench.iterated, ElementsAre(0, 1, 2, 3));
  bench.session().End({});
  EXPECT_EQ(bench.session().record().outcome, SliceOutcome::kStopped);
  EXPECT_EQ(bench.session().record().next_iteration, 4);
}

TEST(SliceSession, AUsedUpBudgetIsAWishToStop) {
  SessionBench bench;
  bench.request.budget_seconds = 1e-9;
  ASSERT_TRUE(bench.WriteCheckpoint(0, 1).ok());
  ASSERT_TRUE(bench.session().Begin().ok());
  EXPECT_FALSE(bench.session().agreement().requested());
  bench.session().StopInTime();
  EXPECT_TRUE(bench.session().agreement().requested());
}

TEST(SliceSession, AnErrorEndsItWithWhatIsDone) {
  for (const int64_t bad : {0, 5}) {
    SessionBench bench;
    ASSERT_TRUE(bench.WriteCheckpoint(0, 1).ok());
    ASSERT_TRUE(bench.session().Begin().ok());
    const Status status = bench.Run(
        [&](int64_t iteration) { return iteration == bad ? DataLossError("torn") : OkStatus(); });
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_EQ(bench.session().record().next_iteration, bad);
    EXPECT_EQ(std::ssize(bench.completed), bad);
  }
}

TEST(SliceSession, AnEndAgreedInTheSliceBeforeHolds) {
  CheckpointManifest manifest;
  manifest.stop_at = 5;
  SessionBench writer;
  CheckpointReference start = CheckpointAt(writer.request, 3);
  SessionBench bench(start);
  ASSERT_TRUE(bench.WriteCheckpoint(3, 1, manifest).ok());
  ASSERT_TRUE(bench.session().Begin().ok());
  ASSERT_TRUE(bench.Run().ok());
  EXPECT_THAT(bench.iterated, ElementsAre(3, 4));
  bench.session().End({});
  EXPECT_EQ(bench.session().record().outcome, SliceOutcome::kFinished);
}

TEST(SliceSession, ACheckpointOfAnotherModelIsRefused) {
  SessionBench writer;
  SessionBench bench(CheckpointAt(writer.request, 3));
  bench.request.plan.parameters -= 1;
  ASSERT_TRUE(bench.WriteCheckpoint(3, 1).ok());
  bench.request.plan.parameters += 1;
  const Status begun = bench.session().Begin();
  EXPECT_EQ(begun.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(begun.message(), HasSubstr("start from a checkpoint of this model"));
}

}  // namespace
}  // namespace lambdadnn
