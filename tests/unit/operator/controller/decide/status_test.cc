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

}  // namespace
}  // namespace lambdadnn
