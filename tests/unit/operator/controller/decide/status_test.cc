// SPDX-License-Identifier: Apache-2.0
// When a job's place in the queue is written at once.
#include "operator/controller/decide/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "operator/api/conditions.h"
#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

QueueView Queue(int ahead) {
  QueueView queue;
  queue.limited = true;
  queue.capacity.memory_mib = queue.taken.memory_mib = queue.turn.taken.memory_mib = 4096;
  queue.turn.ahead = static_cast<size_t>(ahead);
  queue.first = ahead > 0 ? "other" : "";
  return queue;
}

// A job with a plan for 1 GiB, where others have taken all that there is.
struct WaitingJob {
  WaitingJob() {
    snapshot.options = &options;
    snapshot.job.status.conditions = {
        MakeCondition(kConditionAccepted, true, Reason::kSpecValid, "")};
    snapshot.job.status.profile.emplace();
    Plan& plan = snapshot.job.status.plan.emplace();
    plan.functions = 1;
    plan.memory_mib = plan.server_memory_mib = 1024;
    plan.aggregation.placement = Placement::kWorkers;
  }
  JobStatus At(int ahead) {
    snapshot.observed.queue = Queue(ahead);
    return ComputeStatus(snapshot);
  }

  ControllerOptions options;
  TestSnapshot snapshot;
};

TEST(PlaceInQueue, IsOfAJobThatWaitsInAKnownQueue) {
  WaitingJob job;
  EXPECT_EQ(PlaceInQueue(job.snapshot, job.At(0)), 1);
  const JobStatus third = job.At(2);
  EXPECT_EQ(PlaceInQueue(job.snapshot, third), 3);
  EXPECT_THAT(FindCondition(third.conditions, kConditionReady)->message,
              testing::HasSubstr("place 3 in the queue"));
  job.snapshot.observed.queue.known = false;
  EXPECT_EQ(PlaceInQueue(job.snapshot, third), 0);
  EXPECT_EQ(PlaceInQueue(job.snapshot, JobStatus()), 0);
  // More than there ever is.
  job.snapshot.job.status.plan->memory_mib = 8192;
  EXPECT_EQ(PlaceInQueue(job.snapshot, job.At(2)), 0);
}

TEST(PlaceInQueue, IsNewsForTheNextJobAlone) {
  const struct {
    int told;
    int now;
    bool news;
  } rows[] = {{0, 0, false}, {0, 1, true}, {0, 5, false}, {1, 1, false}, {1, 2, true},
              {1, 0, true},  {2, 1, true}, {5, 2, false}, {5, 0, false}};
  for (const auto& [told, now, news] : rows) {
    EXPECT_EQ(IsPlaceNews(told, now), news) << told << " -> " << now;
  }
}

TEST(DiffersInSubstance, TheSentenceOfThePlaceCountsOnlyWhenItIsNews) {
  WaitingJob job;
  const JobStatus fifth = job.At(4);
  const JobStatus second = job.At(1);
  EXPECT_FALSE(DiffersInSubstance(fifth, second, false));
  EXPECT_TRUE(DiffersInSubstance(fifth, second, true));
  // A new process finds what it would say itself.
  EXPECT_FALSE(DiffersInSubstance(job.At(0), job.At(0), true));
  // Another reason is no progress.
  job.snapshot.job.status.plan->memory_mib = 8192;
  EXPECT_TRUE(DiffersInSubstance(fifth, job.At(1), false));
}

// Tools that know no more than kstatus take an object without Ready for done.
TEST(Ready, IsUnknownUntilFunctionsStart) {
  ControllerOptions options;
  TestSnapshot snapshot;
  snapshot.options = &options;
  const JobStatus status = ComputeStatus(snapshot);
  const Condition* ready = FindCondition(status.conditions, kConditionReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(ready->status, "Unknown");
  EXPECT_TRUE(HasReason(*ready, Reason::kFunctionsStarting));
}

struct EndRow {
  const char* type;  // the condition that is True
  Reason reason;
  const char* ready;  // status of Ready
  bool stalled;
};

class ReadyAtTheEnd : public testing::TestWithParam<EndRow> {};

TEST_P(ReadyAtTheEnd, FollowsTheRulesOfKstatus) {
  const EndRow& row = GetParam();
  ControllerOptions options;
  TestSnapshot snapshot;
  snapshot.options = &options;
  snapshot.job.spec.suspend = row.type == std::string(kConditionSuspended);
  snapshot.job.status.start_time = "2026-01-01T00:00:00Z";
  snapshot.job.status.conditions = {
      MakeCondition(kConditionReady, true, Reason::kFunctionsReady, "")};
  WriteDecision decision;
  decision.conditions = {MakeCondition(row.type, true, row.reason, "why")};
  const JobStatus status = ComputeStatus(snapshot, decision);
  const Condition* ready = FindCondition(status.conditions, kConditionReady);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(ready->status, row.ready);
  EXPECT_TRUE(HasReason(*ready, row.reason));
  const Condition* stalled = FindCondition(status.conditions, kConditionStalled);
  ASSERT_EQ(stalled != nullptr, row.stalled);
  if (stalled == nullptr) return;
  EXPECT_EQ(stalled->status, "True");
  EXPECT_TRUE(HasReason(*stalled, row.reason));
  EXPECT_EQ(stalled->message, "why");
}

INSTANTIATE_TEST_SUITE_P(
    Rows, ReadyAtTheEnd,
    testing::Values(EndRow{kConditionComplete, Reason::kTrainingFinished, "True", false},
                    EndRow{kConditionFailed, Reason::kSliceFailed, "False", true},
                    EndRow{kConditionSuccessCriteriaMet, Reason::kTrainingFinished, "False", false},
                    EndRow{kConditionFailureTarget, Reason::kSliceFailed, "False", false},
                    EndRow{kConditionSuspended, Reason::kJobSuspended, "False", false}));

}  // namespace
}  // namespace lambdadnn
