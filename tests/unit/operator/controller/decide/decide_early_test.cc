// SPDX-License-Identifier: Apache-2.0
// What is decided between a job's admission and its start is one write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/time_text.h"
#include "operator/api/conditions.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_id.h"
#include "operator/controller/admission/reservation.h"
#include "operator/controller/decide/decide.h"
#include "tests/support/job_world.h"
#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

class DecideEarlyTest : public ::testing::Test {
 protected:
  DecideEarlyTest() { Take(JobWorld::MinimalJob()); }

  // A job that has its finalizer, and whose store has answered.
  void Take(const Json& object) {
    const Result<Job> job = DecodeJob(object);
    ASSERT_TRUE(job.ok()) << job.status().ToString();
    snapshot_.job = *job;
    snapshot_.job.metadata.finalizers = {kCleanupFinalizer};
    snapshot_.job.metadata.annotations[kJobIdAnnotation] = JobIdOf(snapshot_.job);
    snapshot_.observed.instances_known = true;
    snapshot_.remembered.admission = OkStatus();
    snapshot_.remembered.store_capabilities.emplace();
    snapshot_.remembered.credentials_known = true;
    snapshot_.options = &world_.options;
    snapshot_.now = Instant(FromSeconds(1000));
    snapshot_.wall = WallTime(FromSeconds(1'700'000'000));
  }
  // As the first to come when there is capacity for so many MiB.
  void LimitTo(double memory_mib) {
    snapshot_.observed.queue.limited = true;
    snapshot_.observed.queue.known = true;
    snapshot_.observed.queue.capacity.memory_mib = memory_mib;
  }
  // The only decision.
  WriteDecision Written() const {
    const std::vector<Action> actions = Decide(snapshot_);
    const bool one = actions.size() == 1 && std::holds_alternative<WriteDecision>(actions[0]);
    EXPECT_TRUE(one) << actions.size() << " actions";
    return one ? std::get<WriteDecision>(actions[0]) : WriteDecision{};
  }
  static std::vector<std::string> Types(const WriteDecision& write) {
    std::vector<std::string> types;
    for (const Condition& condition : write.conditions) types.push_back(condition.type);
    return types;
  }

  JobWorld world_;
  TestSnapshot snapshot_;
};

using Words = std::vector<std::string>;

// What it may leave in the store goes with a job that was accepted.
TEST_F(DecideEarlyTest, AJobIsAcceptedBeforeAnythingIsWrittenToItsStore) {
  snapshot_.remembered.store_capabilities.reset();
  const WriteDecision write = Written();
  EXPECT_EQ(write.why, "accept");
  snapshot_.job.status.conditions = write.conditions;
  const std::vector<Action> next = Decide(snapshot_);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<CheckAdmission>(next[0]));
}

TEST_F(DecideEarlyTest, AJobWhoseDataSetCannotBeTrainedOnIsNotAccepted) {
  snapshot_.remembered.dataset_refused = InvalidArgumentError("train.csv holds no samples");
  const WriteDecision write = Written();
  EXPECT_FALSE(write.plan.has_value());
  const Condition* failed = FindCondition(write.conditions, kConditionFailureTarget);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->reason, "DatasetNotUsable");
  EXPECT_EQ(failed->message, "train.csv holds no samples");
}

TEST_F(DecideEarlyTest, AJobWhoseModuleCannotBeTrainedIsNotAccepted) {
  snapshot_.remembered.module_refused = InvalidArgumentError("its code has __setstate__");
  const WriteDecision write = Written();
  EXPECT_FALSE(write.plan.has_value());
  const Condition* failed = FindCondition(write.conditions, kConditionFailureTarget);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->reason, "ModelNotUsable");
  EXPECT_EQ(failed->message, "its code has __setstate__");
}

TEST_F(DecideEarlyTest, WhatIsKnownOfTheModuleIsWrittenBeforeAnythingStarts) {
  snapshot_.remembered.module = {"sha256:01", false};
  const WriteDecision write = Written();
  EXPECT_EQ(write.why, "accept, given profile, plan, start");
  ASSERT_TRUE(write.execution.has_value());
  EXPECT_EQ(write.execution->module, snapshot_.remembered.module);
}

TEST_F(DecideEarlyTest, AJobThatNothingHoldsUpIsAcceptedPlannedAndStartedByOneWrite) {
  const WriteDecision write = Written();
  EXPECT_EQ(write.why, "accept, given profile, plan, start");
  EXPECT_EQ(Types(write), (Words{kConditionAccepted, kConditionProvisioned}));
  ASSERT_TRUE(write.plan.has_value());
  EXPECT_EQ(write.plan->functions, 2);
  EXPECT_TRUE(write.profile.has_value());
  EXPECT_TRUE(write.execution.has_value());
  EXPECT_EQ(write.start_time, FormatRfc3339Millis(snapshot_.wall));
  EXPECT_EQ(write.reservation, ReservationOf(*write.plan, world_.options.platform));
}

TEST_F(DecideEarlyTest, AGivenProfileThatFitsBadlyIsToldBeforeAnybodyTrustsThePlan) {
  snapshot_.job.spec.profile->residual = 0.9;
  const WriteDecision write = Written();
  const Condition* degraded = FindCondition(write.conditions, kConditionDegraded);
  ASSERT_NE(degraded, nullptr);
  EXPECT_EQ(degraded->reason, "ProfileUncertain");
  EXPECT_THAT(degraded->message, testing::HasSubstr("90 % off"));
}

TEST_F(DecideEarlyTest, AJobForWhichThereIsNoRoomIsPlannedAndNotStarted) {
  const double needed = Written().reservation->memory_mib;
  LimitTo(needed - 1);
  WriteDecision write = Written();
  EXPECT_EQ(write.why, "accept, given profile, plan");
  EXPECT_TRUE(write.plan.has_value());
  EXPECT_FALSE(write.start_time.has_value());
  EXPECT_FALSE(write.reservation.has_value());

  LimitTo(needed);
  EXPECT_TRUE(Written().start_time.has_value());
  // Nobody takes what others before wait for, or may be about to.
  snapshot_.observed.queue.turn.ahead = 1;
  snapshot_.observed.queue.turn.taken.memory_mib = 1;
  EXPECT_FALSE(Written().start_time.has_value());
  LimitTo(needed + 1);
  EXPECT_TRUE(Written().start_time.has_value());
  snapshot_.observed.queue.turn.overtakes = true;
  EXPECT_FALSE(Written().start_time.has_value());
  snapshot_.observed.queue.turn.overtakes = false;
  snapshot_.observed.queue.undecided = 1;
  EXPECT_FALSE(Written().start_time.has_value());
}

TEST_F(DecideEarlyTest, NothingIsSaidForTheMomentUntilThePlaceInTheQueueIsKnown) {
  LimitTo(1e6);
  snapshot_.observed.queue.turn.ahead = 1;
  snapshot_.observed.queue.undecided = 1;
  snapshot_.observed.queue.unsettled = true;
  EXPECT_TRUE(IsHeld(snapshot_));
  EXPECT_TRUE(Decide(snapshot_).empty());
  snapshot_.observed.queue.unsettled = false;
  EXPECT_FALSE(IsHeld(snapshot_));
  EXPECT_EQ(Written().why, "accept, given profile, plan");
  // Who has said something says the rest.
  snapshot_.job.status.conditions = Written().conditions;
  snapshot_.observed.queue.unsettled = true;
  EXPECT_FALSE(IsHeld(snapshot_));
}

TEST_F(DecideEarlyTest, AJobWithoutAPlanIsAcceptedBeforeItFails) {
  Json object = JobWorld::MinimalJob();
  object["spec"]["objective"] = {{"deadlineSeconds", 1}};
  object["spec"]["training"]["epochs"] = 1'000'000;
  Take(object);
  const WriteDecision accepted = Written();
  EXPECT_EQ(accepted.why, "accept, given profile");
  snapshot_.job.status.profile = accepted.profile;
  snapshot_.job.status.conditions = accepted.conditions;
  EXPECT_EQ(Types(Written()), Words{kConditionFailureTarget});
}

TEST_F(DecideEarlyTest, AJobThatMustBeMeasuredIsAcceptedFirst) {
  snapshot_.job.spec.profile.reset();
  EXPECT_EQ(Written().why, "accept");
  // With what an earlier job like it has shown it goes on.
  snapshot_.remembered.measurements_read = true;
  snapshot_.remembered.kept_profile = {*DecodeJob(JobWorld::MinimalJob())->spec.profile,
                                       {.largest_mib = 1 << 20}};
  EXPECT_EQ(Written().why, "accept, kept profile, plan, start");
}

TEST_F(DecideEarlyTest, WhatIsLookedUpFirstEndsTheWrite) {
  snapshot_.job.spec.checkpoint.resume_from = "file:///store/other";
  const WriteDecision write = Written();
  EXPECT_EQ(write.why, "accept, given profile");
  EXPECT_FALSE(write.plan.has_value());
}

TEST_F(DecideEarlyTest, WhatIsSuspendedIsNotPlanned) {
  snapshot_.job.spec.suspend = true;
  for (const Action& action : Decide(snapshot_)) {
    const auto* write = std::get_if<WriteDecision>(&action);
    ASSERT_NE(write, nullptr);
    EXPECT_FALSE(write->plan.has_value());
    EXPECT_EQ(write->start_time.value_or(""), "");
  }
}

}  // namespace
}  // namespace lambdadnn
