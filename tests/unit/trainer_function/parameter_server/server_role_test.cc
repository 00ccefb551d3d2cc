// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/parameter_server/server_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gate.h"
#include "tests/support/role_bench.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// One epoch of 4 iterations.
HarnessJob Job(std::vector<int> layers) {
  HarnessJob job;
  job.layers = std::move(layers);
  job.parameters = 2 * kDefaultBlockElements;
  job.samples = 128;
  job.epochs = 1;
  job.optimizer.learning_rate = 0.5;
  return job;
}

Role ServerOf(const HarnessJob& job, const ServerPosition& position) {
  return {RoleKind::kServer, ServerRank(job.MakePlan().aggregation, position), position};
}

// The one root of two workers, whose gradients of so many iterations are there, each of 2 samples.
// It begins with weights of 10.
struct RootBench : RoleBench {
  explicit RootBench(const HarnessJob& job, int64_t iterations = 4, double loss_sum = 6)
      : RoleBench(job, ServerOf(job, {1, 0, 0})) {
    EXPECT_TRUE(WriteCheckpoint(0, 10).ok());
    for (int64_t iteration = 0; iteration < iterations; ++iteration) {
      for (const int child : {0, 1}) {
        EXPECT_TRUE(
            Push(ObjectKind::kGradient, iteration, 0, child, 1, {{}, 2, loss_sum, 0, false}).ok());
      }
    }
  }
};

TEST(ServerRole, ARootUpdatesChecksAndLeavesACheckpoint) {
  const HarnessJob job = Job({1, 2});
  RootBench bench(job);
  ASSERT_TRUE(RunServerRole(bench.session()).ok());
  const SliceRecord& record = bench.session().record();
  EXPECT_EQ(record.outcome, SliceOutcome::kFinished);
  EXPECT_EQ(record.next_iteration, 4);
  EXPECT_EQ(record.checkpoint, CheckpointAt(bench.request, 4));
  // A mean gradient of 2 / 4 in each iteration: 10 - 4 * 0.5 * 0.5.
  const std::vector<float> trained(static_cast<size_t>(job.parameters), 9);
  EXPECT_EQ(record.state_digest, Hex64(Xxh3(AsBytes(std::span<const float>(trained)))));
  ParameterState written = ParameterState::Zero({0, job.parameters}, 0);
  ASSERT_TRUE(ReadCheckpoint(bench.memory, *record.checkpoint,
                             ReadManifest(bench.memory, *record.checkpoint).value(), &written)
                  .ok());
  EXPECT_EQ(written.weights, trained);
  // Of what it has made the last alone may still be read, and by a worker that is started again the
  // one before.
  EXPECT_EQ(bench.Keys("/w/").size(), 4u) << "two a shard";
  EXPECT_TRUE(bench.Pull({ObjectKind::kWeights, 4, 1, 0, 0}).ok());
  // The mean loss of the four samples of the two workers.
  ASSERT_EQ(bench.lines.size(), 4u);
  EXPECT_EQ(bench.lines.back().iteration, 4);
  EXPECT_EQ(bench.lines.back().loss, 3.0);
}

TEST(ServerRole, ALeafPassesItsSumsOnAndKeepsNothing) {
  const HarnessJob job = Job({1, 2, 4});
  RoleBench bench(job, ServerOf(job, {1, 1, 0}));
  ASSERT_TRUE(bench.WriteCheckpoint(0, 10).ok());
  // Its children are the second half of the workers. Its root never answers, so that another role
  // writes the final checkpoint.
  for (int64_t iteration = 0; iteration < 4; ++iteration) {
    for (const int child : {2, 3}) {
      ASSERT_TRUE(bench
                      .Push(ObjectKind::kGradient, iteration, 0, child, static_cast<float>(child),
                            {{}, 2, 6, 0, false})
                      .ok());
    }
  }
  ASSERT_TRUE(RunServerRole(bench.session()).ok());
  const auto sum = bench.Pull({ObjectKind::kGradient, 3, 1, 0, 1});
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(sum->values<float>()[0], 5.0F);
  EXPECT_EQ(sum->header.samples, 4);
  EXPECT_EQ(sum->header.loss_sum, 12.0);
  const SliceRecord& record = bench.session().record();
  EXPECT_EQ(record.next_iteration, 4);
  EXPECT_EQ(record.state_digest, "");
  EXPECT_FALSE(record.checkpoint.has_value());
  EXPECT_THAT(bench.lines, IsEmpty());
  EXPECT_THAT(bench.Keys("checkpoints/4/"), IsEmpty());
}

TEST(ServerRole, StopsOneIterationAfterItWasAsked) {
  const HarnessJob job = Job({1, 2});
  RootBench bench(job);
  bench.stop_wanted = [] { return true; };
  ASSERT_TRUE(RunServerRole(bench.session()).ok());
  const SliceRecord& record = bench.session().record();
  EXPECT_EQ(record.outcome, SliceOutcome::kStopped);
  EXPECT_EQ(record.next_iteration, 2);
  EXPECT_EQ(record.checkpoint, CheckpointAt(bench.request, 2));
  EXPECT_EQ(bench.Pull({ObjectKind::kWeights, 2, 1, 0, 0})->header.stop_at, 2)
      << "workers that pull the last weights read the end in them";
}

TEST(ServerRole, CheckpointsAsOftenAsPlanned) {
  HarnessJob job = Job({1, 2});
  job.checkpoint_every = 2;
  job.checkpoint_keep = 10;
  RootBench bench(job);
  ASSERT_TRUE(RunServerRole(bench.session()).ok());
  EXPECT_EQ(bench.Keys("manifest.json").size(), 3u) << "0, 2 and 4";
}

// Holds what is written of the checkpoint of iteration 2 until the weights of `version` are pushed.
void HoldCheckpoint(RoleBench& bench, Gate& gate, int64_t version) {
  const std::string weights = "/" + std::to_string(version) + "/w/";
  bench.store.SetScript(
      [&gate, weights](StoreOperation operation, std::string_view key, bool done) {
        if (operation != StoreOperation::kPut) return OkStatus();
        if (done && key.find(weights) != std::string_view::npos) gate.Open();
        if (!done && key.find("/checkpoints/2/") != std::string_view::npos) {
          EXPECT_TRUE(gate.Pass()) << key;
        }
        return OkStatus();
      });
}

TEST(ServerRole, IterationsGoOnWhileACheckpointIsWritten) {
  HarnessJob job = Job({1, 2});
  job.epochs = 3;  // 12 iterations
  job.checkpoint_every = 2;
  job.checkpoint_keep = 10;
  RootBench bench(job, 12);
  Gate gate;
  HoldCheckpoint(bench, gate, 9);
  ASSERT_TRUE(RunServerRole(bench.session()).ok());
  const SliceRecord& record = bench.session().record();
  EXPECT_EQ(record.next_iteration, 12);
  EXPECT_EQ(record.checkpoint, CheckpointAt(bench.request, 12));
  // They came due while that of 2 was written, or were told of then.
  EXPECT_EQ(record.metrics.at(kCheckpointsSkippedMetric), 4);
  for (const int64_t iteration : {4, 6, 8, 10}) {
    const std::string folder = "/checkpoints/" + std::to_string(iteration) + "/";
    EXPECT_THAT(bench.Keys(folder), IsEmpty());
  }
  // What was written meanwhile is what the iterations began with: two of a mean gradient of 0.5.
  const CheckpointReference second = CheckpointAt(bench.request, 2);
  ParameterState written = ParameterState::Zero({0, job.parameters}, 0);
  ASSERT_TRUE(
      ReadCheckpoint(bench.memory, second, ReadManifest(bench.memory, second).value(), &written)
          .ok());
  EXPECT_EQ(written.weights, std::vector<float>(static_cast<size_t>(job.parameters), 9.5F));
}

TEST(ServerRole, TheLastCheckpointFollowsTheOneThatIsBeingWritten) {
  HarnessJob job = Job({1, 2});
  job.checkpoint_every = 2;
  job.checkpoint_keep = 10;
  RootBench bench(job);
  Gate gate;
  HoldCheckpoint(bench, gate, 4);
  ASSERT_TRUE(RunServerRole(bench.session()).ok());
  EXPECT_EQ(bench.Keys("manifest.json").size(), 3u) << "0, 2 and 4";
  EXPECT_FALSE(bench.session().record().metrics.contains(kCheckpointsSkippedMetric));
}

// With the error that a slice had which waited for it.
TEST(ServerRole, ACheckpointThatCannotBeWrittenEndsTheSlice) {
  for (const char* const what : {"/checkpoints/2/r1.i0/s1", "/checkpoints/2/r1.i0/manifest.json"}) {
    HarnessJob job = Job({1, 2});
    job.checkpoint_every = 2;
    RootBench bench(job);
    bench.store.SetScript([what](StoreOperation operation, std::string_view key, bool done) {
      const bool fails = operation == StoreOperation::kPut && !done && key.ends_with(what);
      return fails ? PermissionDeniedError("not allowed") : OkStatus();
    });
    const Status status = RunServerRole(bench.session());
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << what;
    EXPECT_THAT(status.message(), HasSubstr("writing checkpoint "));
    EXPECT_THAT(status.message(), HasSubstr(what));
    EXPECT_EQ(bench.session().record().checkpoint, CheckpointAt(bench.request, 0))
        << "where the slice began";
    EXPECT_THAT(bench.Keys("/checkpoints/4/"), IsEmpty());
  }
}

// Also after a failure: this is where the job goes on.
TEST(ServerRole, AFailureWaitsForTheCheckpointThatIsBeingWritten) {
  HarnessJob job = Job({1, 2});
  job.checkpoint_every = 2;
  RootBench bench(job, 3);
  ASSERT_TRUE(bench.Push(ObjectKind::kGradient, 3, 0, 0, 1, {{}, 2, std::nan(""), 0, false}).ok());
  ASSERT_TRUE(bench.Push(ObjectKind::kGradient, 3, 0, 1, 1, {{}, 2, 6, 0, false}).ok());
  Gate gate;
  HoldCheckpoint(bench, gate, 3);
  EXPECT_THAT(RunServerRole(bench.session()).message(), HasSubstr("the loss of iteration 3"));
  EXPECT_EQ(bench.session().record().checkpoint, CheckpointAt(bench.request, 2));
}

TEST(ServerRole, ALossLowEnoughEndsTheTraining) {
  HarnessJob job = Job({1, 2});
  job.epochs = 3;
  job.stop_at_loss = 3.5;
  RootBench bench(job, 12);
  ASSERT_TRUE(RunServerRole(bench.session()).ok());
  const SliceRecord& record = bench.session().record();
  EXPECT_EQ(record.outcome, SliceOutcome::kFinished);
  EXPECT_EQ(record.next_iteration, 5) << "the epoch ends with 4; its weights tell the end";
}

TEST(ServerRole, ALossThatIsNoNumberIsTheJobsOwnFault) {
  const HarnessJob job = Job({1, 2});
  RootBench bench(job, 4, std::numeric_limits<double>::quiet_NaN());
  const Status status = RunServerRole(bench.session());
  EXPECT_THAT(status.message(), HasSubstr("the loss of iteration 0"));
  EXPECT_TRUE(bench.session().record().permanent);
  EXPECT_EQ(bench.session().record().next_iteration, 0);
}

TEST(ServerRole, ARequestThatThePlanDoesNotFitIsRefusedBeforeAnythingIsRead) {
  struct Row {
    const char* what;
    std::function<void(SliceRequest&)> change;
    const char* says;
  };
  for (const Row& row : {
           Row{"level", [](SliceRequest& r) { r.roles[0].role.position.level = 3; },
               "the plan has no server at level 3"},
           Row{"index", [](SliceRequest& r) { r.roles[0].role.position.index = 1; },
               "index 1, group 0"},
           Row{"group", [](SliceRequest& r) { r.roles[0].role.position.group = 1; },
               "index 0, group 1"},
           Row{"parameters", [](SliceRequest& r) { r.plan.parameters = 0; },
               "plan.parameters: a server needs the size of the model"},
       }) {
    const HarnessJob job = Job({1, 2});
    RoleBench bench(job, ServerOf(job, {1, 0, 0}));
    row.change(bench.request);
    int asked = 0;
    bench.store.SetScript([&](StoreOperation, std::string_view, bool) {
      ++asked;
      return OkStatus();
    });
    EXPECT_THAT(RunServerRole(bench.session()).message(), HasSubstr(row.says)) << row.what;
    EXPECT_TRUE(bench.session().record().permanent) << row.what;
    EXPECT_EQ(asked, 0) << row.what;
  }
}

}  // namespace
}  // namespace lambdadnn
