// SPDX-License-Identifier: Apache-2.0
// When the clean-up of a deleted job has met what its functions wrote late.
#include <gtest/gtest.h>

#include "operator/api/job_id.h"
#include "operator/controller/decide/decide.h"
#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

constexpr double kSettleSeconds = 5;

class DecideDeletionTest : public ::testing::Test {
 protected:
  DecideDeletionTest() {
    options_.cleanup_settle_seconds = kSettleSeconds;
    snapshot_.options = &options_;
    snapshot_.now = Instant(FromSeconds(1000));
    snapshot_.wall = WallTime(FromSeconds(1'700'000'000));
    snapshot_.job.metadata.finalizers = {kCleanupFinalizer};
    snapshot_.job.metadata.annotations[kJobIdAnnotation] = JobIdOf(snapshot_.job);
    snapshot_.job.status.conditions.push_back(
        MakeCondition(kConditionAccepted, true, Reason::kSpecValid, ""));
    snapshot_.observed.instances_known = true;
    snapshot_.remembered.exchange_cleaned = true;
    snapshot_.remembered.job_key_deleted = true;
  }

  void Finished(double seconds_ago) {
    snapshot_.job.status.conditions.push_back(
        MakeCondition(kConditionComplete, true, Reason::kTrainingFinished, ""));
    snapshot_.job.status.completion_time = FormatRfc3339(snapshot_.wall - FromSeconds(seconds_ago));
  }
  void CleanedUp(double seconds_ago) {
    snapshot_.remembered.cleaned_at = snapshot_.now - FromSeconds(seconds_ago);
  }

  Instant LongAgo() const { return snapshot_.now - FromSeconds(2 * options_.cleanup_seconds); }
  // A job with functions, which its platform does not delete.
  void CannotRelease(BackendKind backend) {
    options_.backend = backend;
    snapshot_.job.status.conditions.push_back(
        MakeCondition(kConditionReady, true, Reason::kFunctionsReady, ""));
    snapshot_.remembered.job_key_deleted = false;
    snapshot_.remembered.cleaned_again = true;
    snapshot_.remembered.release.Note(UnavailableError("secret of gateway: no answer"), LongAgo());
  }
  // The only action: Degraded is written, and then true.
  Condition Told() {
    const std::vector<Action> actions = DecideDeletion(snapshot_);
    const auto* told = actions.size() == 1 ? std::get_if<WriteDecision>(&actions[0]) : nullptr;
    if (told == nullptr) return {};
    snapshot_.job.status.conditions.push_back(told->conditions.at(0));
    return told->conditions.at(0);
  }
  bool Releases() const {
    const std::vector<Action> actions = DecideDeletion(snapshot_);
    return actions.size() == 1 && std::holds_alternative<DeleteJobKey>(actions[0]);
  }

  bool CleansAgain() const {
    const std::vector<Action> actions = DecideDeletion(snapshot_);
    return actions.size() == 1 && std::holds_alternative<CleanUpStore>(actions[0]);
  }
  bool Waits() const { return DecideDeletion(snapshot_).empty(); }
  bool Ends() const {
    const std::vector<Action> actions = DecideDeletion(snapshot_);
    return actions.size() == 1 && std::holds_alternative<RemoveFinalizer>(actions[0]);
  }

  ControllerOptions options_;
  TestSnapshot snapshot_;
};

TEST_F(DecideDeletionTest, ARunningJobIsCleanedUpTwice) {
  CleanedUp(1);
  EXPECT_TRUE(Waits());
  CleanedUp(kSettleSeconds);
  EXPECT_TRUE(CleansAgain());
  snapshot_.remembered.cleaned_again = true;
  EXPECT_TRUE(Ends());
}

TEST_F(DecideDeletionTest, AJobThatFinishedJustBeforeIsCleanedUpAgain) {
  Finished(kSettleSeconds + 0.1);  // cleaned up at its end, not since
  CleanedUp(kSettleSeconds + 0.1);
  EXPECT_TRUE(CleansAgain());
}

TEST_F(DecideDeletionTest, OneCleanUpServesAJobThatHasBeenFinishedForLong) {
  Finished(3600);  // by an earlier process
  CleanedUp(0.1);
  EXPECT_TRUE(Ends());
}

TEST_F(DecideDeletionTest, NothingIsCleanedUpOfAJobThatKeepsAll) {
  snapshot_.job.spec.cleanup_policy = CleanupPolicy::kNever;
  snapshot_.remembered.exchange_cleaned = false;
  EXPECT_TRUE(Ends());
}

TEST_F(DecideDeletionTest, WhatIsLeftIsToldAlsoOfAJobThatIsDegradedForAnotherReason) {
  snapshot_.remembered.exchange_cleaned = false;
  snapshot_.remembered.cleanup.failing_since = LongAgo();
  std::vector<Condition>& conditions = snapshot_.job.status.conditions;
  conditions.push_back(MakeCondition(kConditionDegraded, true, Reason::kProfileUncertain, ""));
  const std::vector<Action> actions = DecideDeletion(snapshot_);
  ASSERT_EQ(actions.size(), 1u);
  const auto* told = std::get_if<WriteDecision>(&actions[0]);
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->conditions.at(0).reason, "CleanupIncomplete");
  conditions.back() = told->conditions.at(0);
  EXPECT_TRUE(Ends());
}

TEST_F(DecideDeletionTest, WhatIsNotReleasedIsToldAndLeftToWhoDeletesOrphans) {
  CannotRelease(BackendKind::kKnative);
  const Condition told = Told();
  EXPECT_EQ(told.reason, "ReleaseIncomplete");
  EXPECT_NE(told.message.find("secret of gateway: no answer"), std::string::npos) << told.message;
  EXPECT_TRUE(Ends());
}

TEST_F(DecideDeletionTest, WhereNobodyDeletesOrphansTheJobStaysUntilItIsReleased) {
  CannotRelease(BackendKind::kOpenFaas);
  EXPECT_EQ(Told().reason, "ReleaseIncomplete");
  EXPECT_TRUE(Releases());
  snapshot_.remembered.release.Note(OkStatus(), snapshot_.now);
  snapshot_.remembered.job_key_deleted = true;
  EXPECT_TRUE(Ends());
}

TEST_F(DecideDeletionTest, AJobThatNeverWantedFunctionsDoesNotWaitForTheirPlatform) {
  CannotRelease(BackendKind::kOpenFaas);
  snapshot_.job.status.conditions.clear();
  EXPECT_EQ(Told().reason, "ReleaseIncomplete");
  EXPECT_TRUE(Ends());
}

TEST_F(DecideDeletionTest, AFailureThatPassedIsNoReasonToGiveUp) {
  CannotRelease(BackendKind::kKnative);
  snapshot_.remembered.release.Note(OkStatus(), snapshot_.now);
  snapshot_.remembered.release.Note(UnavailableError("again"), snapshot_.now);
  EXPECT_TRUE(Releases());
}

TEST_F(DecideDeletionTest, AStoreThatWasNeverUsableIsNotAsked) {
  snapshot_.job.status.conditions.clear();
  snapshot_.remembered.exchange_cleaned = false;
  EXPECT_TRUE(Ends());
}

}  // namespace
}  // namespace lambdadnn
