// SPDX-License-Identifier: Apache-2.0
// Several jobs that share less capacity than they need, in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/job_codec.h"
#include "operator/controller/admission/reservation.h"
#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class AdmissionQueueTest : public ::testing::Test {
 protected:
  AdmissionQueueTest() {
    world_.options.waiting_tick_seconds = 1;
    // What is asked for and refused was promised by nobody.
    world_.functions.script = [this, fault = world_.functions.script](const std::string& call,
                                                                      bool done) {
      if (call == "ensure" && !done) asked_.push_back(world_.time.clock.Now());
      most_mib_ = std::max(most_mib_, world_.functions.taken_mib());
      return fault(call, done);
    };
  }

  // 2 functions and a server, or 1 and 1.
  static Json Named(const std::string& name, bool small = false) {
    Json job = JobWorld::MinimalJob();
    job["metadata"]["name"] = name;
    if (small) {
      job["spec"]["objective"]["fixed"] = {{"functions", 1}, {"memory", "256Mi"}};
      job["spec"]["aggregation"] = {{"placement", "Dedicated"}, {"shards", 1}, {"layers", {1, 1}}};
    }
    return job;
  }
  // It needs nearly twice as much.
  static Json Large(const std::string& name) {
    Json job = Named(name);
    job["spec"]["objective"]["fixed"]["functions"] = 4;
    job["spec"]["aggregation"] = {{"placement", "Dedicated"}, {"shards", 1}, {"layers", {1, 4}}};
    return job;
  }
  // One second after the one before.
  void Create(const Json& job) {
    world_.Create(job);
    world_.time.clock.SleepFor(FromSeconds(1));
    names_.push_back(job.at("metadata").at("name"));
  }
  // What a larger one needs.
  Reservation Needed() {
    JobWorld other;
    other.options.platform = world_.options.platform;
    other.RestartController();
    other.Create(JobWorld::MinimalJob());
    EXPECT_TRUE(other.RunUntil([&] { return other.Read().status.plan.has_value(); }, 10));
    return ReservationOf(*other.Read().status.plan, other.options.platform);
  }
  // Capacity for `jobs` of the larger ones.
  void LimitTo(double jobs) {
    need_mib_ = Needed().memory_mib;
    world_.functions.set_capacity_mib(static_cast<int64_t>(need_mib_ * jobs));
    world_.RestartController();
  }
  bool Started(const std::string& name) { return IsStarted(world_.Read(name)); }
  bool Finished(const std::string& name) { return IsFinished(world_.Read(name)); }
  bool RunUntilItWaits(const std::string& name) {
    return world_.RunUntil(
        [&] { return world_.Reason("Ready", name) == "False/WaitingForCapacity"; }, 20);
  }
  std::string Message(const std::string& name) {
    const Job job = world_.Read(name);
    const Condition* ready = FindCondition(job, kConditionReady);
    return ready == nullptr ? "" : ready->message;
  }
  // Runs on, noting the order in which jobs first get capacity; all must complete.
  std::vector<std::string> OrderOfStarts(double seconds) {
    std::vector<std::string> order;
    const auto all_done = [&] {
      bool all = true;
      for (const std::string& name : names_) {
        if (!world_.Exists(name)) continue;
        if (Started(name) && std::find(order.begin(), order.end(), name) == order.end()) {
          order.push_back(name);
        }
        all = all && Finished(name);
      }
      return all;
    };
    EXPECT_TRUE(world_.RunUntil(all_done, seconds));
    for (const std::string& name : names_) {
      if (!world_.Exists(name)) continue;
      EXPECT_EQ(world_.Reason("Complete", name), "True/TrainingFinished");
    }
    return order;
  }

  JobWorld world_;
  std::vector<std::string> names_;
  std::vector<Instant> asked_;
  double need_mib_ = 0;
  int64_t most_mib_ = 0;
};

TEST_F(AdmissionQueueTest, ALaterJobDoesNotOvertakeOneThatWaits) {
  LimitTo(2);
  Create(Named("c-first"));
  Create(Large("b-second"));
  Create(Named("a-third", true));
  ASSERT_TRUE(
      world_.RunUntil([&] { return Message("a-third").find("place 2") != std::string::npos; }, 8));
  EXPECT_TRUE(Started("c-first"));
  EXPECT_FALSE(Started("b-second"));
  EXPECT_EQ(world_.Read("b-second").status.phase, "Pending");
  EXPECT_EQ(world_.Reason("Ready", "b-second"), "False/WaitingForCapacity");
  EXPECT_THAT(Message("b-second"), HasSubstr("place 1 in the queue: the plan needs"));
  EXPECT_THAT(Message("a-third"), HasSubstr("place 2"));
  EXPECT_THAT(Message("a-third"), HasSubstr("b-second is next"));
  EXPECT_THAT(OrderOfStarts(120), ElementsAre("c-first", "b-second", "a-third"));
  // Nothing was asked for in vain.
  EXPECT_LE(most_mib_, world_.functions.capacity_mib());
  EXPECT_TRUE(world_.functions.Live().empty());
}

TEST_F(AdmissionQueueTest, ASmallJobOvertakesOneThatWaitsWhereThatIsNotDelayed) {
  LimitTo(1.5);
  Create(Named("c-first"));
  Create(Named("b-second"));
  Create(Named("a-third", true));
  ASSERT_TRUE(world_.RunUntil([&] { return Started("a-third"); }, 8));
  EXPECT_FALSE(Started("b-second"));
  // What it takes is left over beside the one that it has overtaken.
  ASSERT_TRUE(world_.RunUntil([&] { return Finished("c-first"); }, 60));
  const Instant freed = world_.time.clock.Now();
  ASSERT_TRUE(world_.RunUntil([&] { return Started("b-second"); }, 60));
  EXPECT_LT(ToSeconds(world_.time.clock.Now() - freed), 1);
  OrderOfStarts(120);
  EXPECT_LE(most_mib_, world_.functions.capacity_mib());
}

TEST_F(AdmissionQueueTest, ANamespaceWithManyJobsDoesNotHoldUpAnother) {
  LimitTo(1.2);
  for (const char* name : {"a1", "a2", "a3", "a4"}) Create(Named(name));
  ASSERT_TRUE(RunUntilItWaits("a4"));
  Json other = Named("b");
  other["metadata"]["namespace"] = "other";
  Create(other);
  names_.back() = "other/b";
  EXPECT_THAT(OrderOfStarts(300), ElementsAre("a1", "other/b", "a2", "a3", "a4"));
}

// As on nodes whose processors are taken long before their memory is, or that hold few pods.
struct Scarce {
  const char* what;
  double cpu;  // of so many jobs
  double functions;
};
class ScarceTest : public AdmissionQueueTest, public testing::WithParamInterface<Scarce> {};

TEST_P(ScarceTest, JobsOfTwoNamespacesTakeTurns) {
  world_.options.platform.milli_cpu_per_gib = 500;
  world_.options.platform.machine_sidecar_milli_cpu = 25;
  const Reservation needed = Needed();
  world_.functions.set_capacity_mib(static_cast<int64_t>(needed.memory_mib * 10));
  world_.functions.capacity_milli_cpu = static_cast<int64_t>(needed.milli_cpu * GetParam().cpu);
  world_.functions.capacity_functions =
      static_cast<int64_t>(needed.functions * GetParam().functions);
  world_.RestartController();
  for (const char* name : {"a1", "a2", "a3"}) Create(Named(name));
  ASSERT_TRUE(RunUntilItWaits("a3"));
  EXPECT_THAT(Message("a2"), HasSubstr(" 1536 MiB, 825 mCPU and 3 functions, "));
  Json other = Named("b");
  other["metadata"]["namespace"] = "other";
  Create(other);
  names_.back() = "other/b";
  EXPECT_THAT(OrderOfStarts(300), ElementsAre("a1", "other/b", "a2", "a3"));
  // One at a time.
  EXPECT_LE(most_mib_, needed.memory_mib);
}

// On nodes that are smaller than the platform's largest function, or busy.
TEST_F(AdmissionQueueTest, ProfilingNeedsNoMoreThanThereIs) {
  world_.options.platform.milli_cpu_per_gib = 500;
  Json measured = Named("a");
  measured["spec"].erase("profile");
  measured["spec"]["objective"] = {{"deadlineSeconds", 100000}};
  measured["spec"]["aggregation"] = JobWorld::DedicatedServers();
  const Job job = *DecodeJob(measured);
  const Reservation whole = ReservationOf(job, world_.options.platform, {});
  world_.functions.capacity_milli_cpu = static_cast<int64_t>(whole.milli_cpu / 2);
  world_.functions.set_capacity_mib(static_cast<int64_t>(whole.memory_mib * 10));
  world_.RestartController();
  // A plan that fits as well.
  measured["spec"]["functions"] = {{"max", 2}};
  Create(measured);
  Json later = Named("b");
  later["spec"].erase("profile");
  Create(later);
  ASSERT_TRUE(RunUntilItWaits("b"));
  EXPECT_TRUE(Started("a"));
  EXPECT_THAT(OrderOfStarts(600), ElementsAre("a", "b"));
}

INSTANTIATE_TEST_SUITE_P(Capacities, ScarceTest,
                         testing::Values(Scarce{"CPU", 1.2, 9}, Scarce{"Functions", 9, 1.4}),
                         [](const auto& row) { return row.param.what; });

TEST_F(AdmissionQueueTest, OfANamespaceTheHigherPriorityStartsFirst) {
  LimitTo(1);
  Create(Named("running"));
  ASSERT_TRUE(world_.RunUntil([&] { return Started("running"); }, 5));
  Create(Named("older"));
  Json urgent = Named("urgent");
  urgent["spec"]["priority"] = 5;
  Create(urgent);
  Create(Named("raised"));
  ASSERT_TRUE(RunUntilItWaits("raised"));
  world_.Patch({{"spec", {{"priority", 3}}}}, "raised");
  EXPECT_THAT(OrderOfStarts(300), ElementsAre("running", "urgent", "raised", "older"));
}

TEST_F(AdmissionQueueTest, WhoeverIsNextIsToldAtOnce) {
  world_.options.waiting_tick_seconds = 30;
  world_.most_seconds_between_passes = 30;
  LimitTo(1);
  Create(Named("a"));
  Create(Named("b"));
  ASSERT_TRUE(world_.RunUntil([&] { return Finished("a"); }, 60));
  const Instant freed = world_.time.clock.Now();
  ASSERT_TRUE(world_.RunUntil([&] { return Started("b"); }, 60));
  EXPECT_LT(ToSeconds(world_.time.clock.Now() - freed), 1);
}

TEST_F(AdmissionQueueTest, ManyJobsRunOneAfterTheOtherAndNoneStarves) {
  LimitTo(1.2);
  std::vector<std::string> expected;
  for (int i = 0; i < 6; ++i) {
    expected.push_back("j" + std::to_string(i));
    Create(Named(expected.back(), i % 2 == 1));
  }
  EXPECT_EQ(OrderOfStarts(600), expected);
  EXPECT_LE(most_mib_, world_.functions.capacity_mib());
}

TEST_F(AdmissionQueueTest, JobsOfOneSecondStandByName) {
  LimitTo(1);
  for (const char* name : {"b", "c", "a"}) {
    world_.Create(Named(name));
    names_.emplace_back(name);
  }
  EXPECT_THAT(OrderOfStarts(300), ElementsAre("a", "b", "c"));
}

TEST_F(AdmissionQueueTest, WhoComesWithOthersForWhomThereIsRoomNeverSaysThatItWaits) {
  LimitTo(3);
  for (const char* name : {"c", "b", "a"}) {
    world_.Create(Named(name));
    names_.emplace_back(name);
  }
  EXPECT_THAT(OrderOfStarts(300), UnorderedElementsAre("a", "b", "c"));
  for (const EventDraft& event : world_.told) EXPECT_NE(event.reason, "WaitingForCapacity");
}

TEST_F(AdmissionQueueTest, AllForWhomThereIsRoomGoAtOnceWhenItIsFreed) {
  LimitTo(1.1);
  Create(Named("large"));
  std::vector<std::string> small;
  for (int i = 0; i < 2; ++i) {
    small.push_back("s" + std::to_string(i));
    Create(Named(small.back(), true));
  }
  ASSERT_TRUE(RunUntilItWaits(small.back()));
  ASSERT_TRUE(world_.RunUntil([&] { return IsEnding(world_.Read("large")); }, 60));
  const auto started = [&] {
    return std::all_of(small.begin(), small.end(), [&](const auto& name) { return Started(name); });
  };
  EXPECT_FALSE(Started(small.front()));
  ASSERT_TRUE(world_.RunUntil([&] { return Started(small.front()); }, 60));
  ASSERT_TRUE(world_.RunUntil(started, 0.5)) << "none of them waits for another";
  EXPECT_LE(most_mib_, world_.functions.capacity_mib());
  OrderOfStarts(300);
}

TEST_F(AdmissionQueueTest, TimeInTheQueueCountsAgainstNoDeadline) {
  LimitTo(1);
  Create(Named("a"));
  Json second = Named("b");
  // A job alone takes 11 s.
  second["spec"]["activeDeadlineSeconds"] = 16;
  Create(second);
  Create(Named("c"));
  EXPECT_THAT(OrderOfStarts(300), ElementsAre("a", "b", "c"));
  WallTime created;
  WallTime started;
  ASSERT_TRUE(ParseRfc3339(world_.Read("b").metadata.creation_timestamp, &created));
  ASSERT_TRUE(ParseRfc3339(world_.Read("b").status.start_time, &started));
  EXPECT_GT(ToSeconds(started - created), 8);
}

TEST_F(AdmissionQueueTest, ANewLeaderKeepsTheOrderAndTheRoom) {
  LimitTo(2);
  Create(Named("c"));
  Create(Large("b"));
  Create(Named("a", true));
  ASSERT_TRUE(RunUntilItWaits("a"));
  for (int i = 0; i < 5; ++i) {
    world_.RestartController();
    world_.RunUntil([] { return false; }, 0.7);
    EXPECT_FALSE(Started("b"));
    EXPECT_FALSE(Started("a"));
  }
  EXPECT_THAT(OrderOfStarts(300), ElementsAre("c", "b", "a"));
  EXPECT_LE(most_mib_, world_.functions.capacity_mib());
}

TEST_F(AdmissionQueueTest, TheNextGoesWhenTheHeadIsDeleted) {
  LimitTo(2);
  Create(Named("a"));
  Create(Large("b"));
  Create(Named("c", true));
  ASSERT_TRUE(RunUntilItWaits("c"));
  world_.Delete("b");
  ASSERT_TRUE(world_.RunUntil([&] { return Started("c"); }, 2));
  EXPECT_FALSE(Finished("a"));
  EXPECT_THAT(OrderOfStarts(300), ElementsAre("a", "c"));
}

TEST_F(AdmissionQueueTest, ASuspendedJobWaitsForNothingAndComesBackToItsPlace) {
  LimitTo(2);
  Create(Named("a"));
  Create(Large("b"));
  Create(Named("c", true));
  ASSERT_TRUE(RunUntilItWaits("c"));
  world_.Patch({{"spec", {{"suspend", true}}}}, "b");
  ASSERT_TRUE(world_.RunUntil([&] { return Started("c"); }, 2));
  EXPECT_EQ(world_.Reason("Suspended", "b"), "True/JobSuspended");
  Create(Large("d"));
  world_.Patch({{"spec", {{"suspend", false}}}}, "b");
  ASSERT_TRUE(world_.RunUntil([&] { return Started("b"); }, 60));
  EXPECT_EQ(world_.Reason("Suspended", "b"), "False/Resumed");
  EXPECT_FALSE(Started("d"));
  OrderOfStarts(300);
}

TEST_F(AdmissionQueueTest, ALaunchThatDoesNotBecomeWholeGivesEverythingBackAndGoesAgain) {
  LimitTo(1);
  world_.options.ready_timeout_seconds = 5;
  world_.RestartController();
  world_.functions.start_nothing = true;
  Create(Named("a"));
  Create(Named("b"));
  ASSERT_TRUE(world_.RunUntil([&] { return Started("a"); }, 5));
  // Its turn to back off, and the other's to try.
  ASSERT_TRUE(world_.RunUntil([&] { return Started("b"); }, 10));
  EXPECT_FALSE(Started("a"));
  EXPECT_LE(most_mib_, world_.functions.capacity_mib());
  world_.functions.start_nothing = false;
  EXPECT_EQ(OrderOfStarts(300).size(), 2U);
  // Five seconds of its own that came to nothing count, those in the queue do not.
  EXPECT_NEAR(world_.Read("a").status.execution.active_seconds, 5, 2.5);
}

TEST_F(AdmissionQueueTest, TwoThatAreRefusedDoNotTryAgainTogether) {
  world_.functions.refuse_groups = ResourceExhaustedError("no capacity on this machine");
  Create(Named("a"));
  Create(Named("b"));
  asked_.clear();
  world_.RunUntil([&] { return asked_.size() >= 8; }, 60);
  ASSERT_GE(asked_.size(), 8U);
  for (size_t i = 3; i < asked_.size(); ++i) EXPECT_NE(asked_[i], asked_[i - 1]) << i;
  world_.functions.refuse_groups = OkStatus();
  OrderOfStarts(300);
}

TEST_F(AdmissionQueueTest, WhatNeverFitsSaysSoAndHoldsNobodyBack) {
  LimitTo(0.5);
  Create(Named("large"));
  Create(Named("small", true));
  ASSERT_TRUE(world_.RunUntil([&] { return Finished("small"); }, 60));
  EXPECT_EQ(world_.Reason("Ready", "large"), "False/ExceedsCapacity");
  EXPECT_THAT(Message("large"), HasSubstr("more than the"));
}

TEST_F(AdmissionQueueTest, ProfilingTakesItsTurnAndNoMoreThanThereIs) {
  LimitTo(1);
  world_.options.platform.total_memory_mib = static_cast<double>(world_.functions.capacity_mib());
  world_.RestartController();
  Json measured = Named("b");
  measured["spec"].erase("profile");
  Create(Named("a"));
  Create(measured);
  Create(Named("c", true));
  ASSERT_TRUE(RunUntilItWaits("c"));
  EXPECT_THAT(Message("b"), HasSubstr("profiling needs"));
  EXPECT_THAT(OrderOfStarts(300), ElementsAre("a", "b", "c"));
  EXPECT_LE(most_mib_, world_.functions.capacity_mib());
}

TEST_F(AdmissionQueueTest, AGrownPlanWaitsForItsCapacity) {
  LimitTo(1.5);
  Json growing = Named("a", true);
  growing["spec"]["training"]["epochs"] = 40;
  growing["spec"]["aggregation"] = {{"placement", "Dedicated"}, {"shards", 1}};
  Create(growing);
  Create(Named("b"));
  ASSERT_TRUE(world_.RunUntil([&] { return Started("b"); }, 20));
  world_.Patch({{"spec", {{"objective", {{"fixed", {{"functions", 2}, {"memory", "512Mi"}}}}}}}},
               "a");
  ASSERT_TRUE(RunUntilItWaits("a"));
  EXPECT_FALSE(Started("a"));
  EXPECT_FALSE(Finished("b"));
  OrderOfStarts(600);
  EXPECT_LE(most_mib_, world_.functions.capacity_mib());
  EXPECT_EQ(world_.Read("a").status.plan->revision, 2);
}

}  // namespace
}  // namespace lambdadnn
