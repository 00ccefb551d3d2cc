// SPDX-License-Identifier: Apache-2.0
// What is seen of a job's starts and releases: which functions start at once, what a quota or
// others beside it cost a start, and when a release begins.
#include "operator/controller/decide/observed_starts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "operator/api/conditions.h"
#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class ObservedStartsTest : public testing::Test {
 protected:
  ObservedStartsTest() {
    options_.backend = BackendKind::kKnative;
    snapshot_.options = &options_;
  }
  static Instant At(double seconds) { return Instant{} + FromSeconds(seconds); }
  InstanceFact& Add(const std::string& uid, const std::string& group, double seen,
                    std::optional<double> ready, const std::string& node = "n1") {
    InstanceFact& fact = snapshot_.observed.instances[uid];
    fact.instance.uid = uid;
    fact.instance.group = group;
    fact.instance.host = {node, "m5.large", "worker:1"};
    fact.memory_mib = 1024;
    fact.first_seen = At(seen);
    if (ready.has_value()) fact.ready = At(*ready);
    return fact;
  }
  void AddSlice(RoleKind kind, int rank, double ended) {
    const Role role = {kind, rank, {}};
    SliceFact& slice = snapshot_.observed.slices[role.Name()];
    slice.role = role;
    slice.ended = At(ended);
  }
  void Succeed() {
    snapshot_.job.status.conditions.push_back(
        MakeCondition(kConditionSuccessCriteriaMet, true, Reason::kTrainingFinished, ""));
  }
  StartedAtOnce Count(const std::string& uid) {
    return CountStarts(snapshot_.observed, snapshot_.observed.instances.at(uid));
  }

  ControllerOptions options_;
  TestSnapshot snapshot_;
};

TEST_F(ObservedStartsTest, StartsThatOverlapOnANodeAreAtOnce) {
  Add("a", "workers", 1, 3);
  Add("b", "workers", 2, 4);
  Add("c", "servers", 2, 5);
  Add("d", "workers", 2, 4, "n2");
  Add("later", "workers", 5, 6);
  Add("never", "workers", 2, std::nullopt).gone = At(2.5);
  EXPECT_EQ(Count("a").on_node, 4) << "b, c and the one that was never ready";
  EXPECT_EQ(Count("a").on_all, 5);
  EXPECT_EQ(Count("d").on_node, 1);
  EXPECT_EQ(Count("later").on_node, 1);
}

TEST_F(ObservedStartsTest, TheLongerOfTheTwoTellsWhenThisProcessCameLate) {
  EXPECT_EQ(StartSeconds(Add("a", "workers", 1, 3)), 2);
  InstanceFact& late = Add("b", "workers", 3, 3);
  late.instance.cold_start_seconds = 2;
  EXPECT_EQ(StartSeconds(late), 2);
  EXPECT_EQ(StartSeconds(Add("c", "workers", 1, std::nullopt)), 0);
  EXPECT_EQ(Count("b").on_node, 3);
}

TEST_F(ObservedStartsTest, OfWorkersAlone) {
  Add("a", "workers", 1, 3);
  Add("b", "servers", 1, 2);
  Add("c", "profile", 10, 11);
  Add("d", "workers-r2", 20, 21);
  const auto workers = ObservedStarts(snapshot_, GroupKind::kWorkers);
  ASSERT_THAT(workers, SizeIs(2));
  EXPECT_EQ(workers[0], (StartSample{{BackendKind::kKnative, "worker:1", "m5.large", 2}, 2, {}}));
  EXPECT_EQ(workers[1], (StartSample{{BackendKind::kKnative, "worker:1", "m5.large", 1}, 1, {}}));
  EXPECT_THAT(ObservedStarts(snapshot_, GroupKind::kProfile), SizeIs(1));
}

TEST_F(ObservedStartsTest, AreWithACoreOfTheirOwn) {
  options_.platform.total_milli_cpu = 1000;
  Add("a", "workers", 1, 4);
  Add("b", "workers", 1, 4);
  EXPECT_THAT(ObservedStarts(snapshot_, GroupKind::kWorkers), IsEmpty())
      << "two share a core, and nobody knows what that costs";
  WorkloadProfile profile;
  profile.start_cpu_seconds = 0.5;
  const auto starts = ObservedStarts(snapshot_, GroupKind::kWorkers, profile);
  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[0].cold_start_seconds, 2.5);
}

TEST_F(ObservedStartsTest, AReleaseBeginsWhenTheTrainingIsOver) {
  Add("a", "workers", 1, 3).gone = At(12);
  Add("b", "workers", 1, 3).gone = At(8);
  Add("c", "workers", 1, 3);
  AddSlice(RoleKind::kWorker, 0, 9);
  AddSlice(RoleKind::kWorker, 1, 10);
  AddSlice(RoleKind::kServer, 0, 11);
  EXPECT_FALSE(ObservedStarts(snapshot_, GroupKind::kWorkers)[0].release_seconds.has_value())
      << "functions of a job that fails end for other reasons";
  Succeed();
  const auto starts = ObservedStarts(snapshot_, GroupKind::kWorkers);
  EXPECT_EQ(starts[0].release_seconds, 2);
  EXPECT_FALSE(starts[1].release_seconds.has_value()) << "it was lost before";
  EXPECT_FALSE(starts[2].release_seconds.has_value()) << "it lives";
}

TEST_F(ObservedStartsTest, AReleaseOfAProfileBeginsWhenItIsMeasured) {
  Add("a", "profile", 1, 3).gone = At(7);
  Add("b", "profile", 1, 3).gone = At(8);
  AddSlice(RoleKind::kProfile, 0, 6);
  AddSlice(RoleKind::kProfile, 1, 7.5);
  const auto starts = ObservedStarts(snapshot_, GroupKind::kProfile);
  EXPECT_EQ(starts[0].release_seconds, 1);
  EXPECT_EQ(starts[1].release_seconds, 2) << "what only fills the machine does not count";
}

}  // namespace
}  // namespace lambdadnn
