// SPDX-License-Identifier: Apache-2.0
#include "common/plan/poll_schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "common/base/random.h"
#include "common/base/statistics.h"
#include "common/plan/collective_cost.h"

namespace lambdadnn {
namespace {

struct Outcome {
  int misses = 0;
  Duration found{};
};

// Asks on virtual time for an object that comes after `arrival`, and learns from it.
// Requests in vain take `took`, and are known to take `miss`.
Outcome Poll(ArrivalEstimate& estimate, Duration arrival, Duration miss = {}, Duration took = {}) {
  Outcome outcome;
  const Duration expected = estimate.expected();
  Duration now = estimate.FirstPoll();
  std::optional<Duration> last_miss;
  while (now < arrival) {
    ++outcome.misses;
    last_miss = now;
    now += took + NextPollGap(now, expected, miss);
  }
  estimate.Observe(last_miss, now);
  outcome.found = now;
  return outcome;
}

ArrivalEstimate Trained(Duration arrival) {
  ArrivalEstimate estimate;
  for (int i = 0; i < 20; ++i) Poll(estimate, arrival);
  return estimate;
}

TEST(PollSchedule, MissesAreBoundedForEveryWaitAndEveryExpectation) {
  int worst = 0;
  for (double expected = 1e-4; expected < 3600; expected *= 1.5) {
    for (double wait = 1e-4; wait <= 3600; wait *= 1.2) {
      ArrivalEstimate estimate = Trained(FromSeconds(expected));
      worst = std::max(worst, Poll(estimate, FromSeconds(wait)).misses);
    }
    ArrivalEstimate estimate = Trained(FromSeconds(expected));
    worst = std::max(worst, Poll(estimate, kMaxPollWait).misses);
  }
  ArrivalEstimate fresh;
  worst = std::max(worst, Poll(fresh, kMaxPollWait).misses);
  EXPECT_LE(worst, kMaxMissesPerObject);
  EXPECT_GE(worst, 100) << "the bound is not idle";
}

TEST(PollSchedule, ObjectsThatComeAsExpectedAreAskedForInVainAsOftenAsSaid) {
  SeededRandom random(1);
  for (double expected = 5e-3; expected < 300; expected *= 1.3) {
    for (const double miss : {1e-3, 5e-3, 20e-3}) {
      for (const double scatter : {0.0, 0.05}) {
        ArrivalEstimate estimate = Trained(FromSeconds(expected));
        double misses = 0;
        constexpr int kTimes = 200;
        for (int i = 0; i < kTimes; ++i) {
          const double late = scatter * NormalQuantile(0.001 + 0.998 * random.Uniform());
          const Duration took = FromSeconds(miss);
          misses += Poll(estimate, FromSeconds(expected * (1 + late)), took, took).misses;
        }
        EXPECT_NEAR(misses / kTimes, ExpectedMisses(expected, scatter * expected, miss), 1.7)
            << "after " << expected << " s, by requests of " << miss << " s, scatter " << scatter;
      }
    }
  }
}

TEST(PollSchedule, AnUnexpectedObjectIsFoundWithinTheStatedShareOfTheWait) {
  for (double wait = 1e-3; wait <= 3600; wait *= 1.07) {
    ArrivalEstimate fresh;
    const Duration arrival = FromSeconds(wait);
    const Duration late = Poll(fresh, arrival).found - arrival;
    EXPECT_LE(ToSeconds(late), kPollGrowth * wait + ToSeconds(kMinPollGap)) << wait;
  }
}

TEST(PollSchedule, TheMeanOverheadIsNearHalfTheGrowth) {
  double late = 0;
  double waited = 0;
  for (double wait = 1; wait <= 100; wait *= 1.003) {
    ArrivalEstimate fresh;
    late += ToSeconds(Poll(fresh, FromSeconds(wait)).found) - wait;
    waited += wait;
  }
  EXPECT_LT(late / waited, 0.065);
}

TEST(PollSchedule, ALearnedArrivalCostsFewMissesAndTwoPerCent) {
  for (const double wait : {0.05, 0.5, 5.0, 50.0}) {
    ArrivalEstimate estimate = Trained(FromSeconds(wait));
    const Outcome outcome = Poll(estimate, FromSeconds(wait));
    EXPECT_LE(outcome.misses, 12) << wait;
    EXPECT_LE(ToSeconds(outcome.found), wait * 1.025 + ToSeconds(kMinPollGap)) << wait;
  }
}

TEST(PollSchedule, OneSlowIterationIsNotLearned) {
  ArrivalEstimate estimate = Trained(FromSeconds(0.02));
  Poll(estimate, FromSeconds(10));
  EXPECT_LT(ToSeconds(estimate.FirstPoll()), 0.02);
  // Nor is the first, which waits for functions to start.
  ArrivalEstimate fresh;
  Poll(fresh, FromSeconds(10));
  EXPECT_EQ(fresh.FirstPoll(), Duration::zero());
}

TEST(PollSchedule, ANewPaceIsLearnedDownwards) {
  ArrivalEstimate estimate = Trained(FromSeconds(10));
  double found = 0;
  for (int i = 0; i < 12; ++i) found = ToSeconds(Poll(estimate, FromSeconds(0.1)).found);
  EXPECT_LT(found, 0.12);
}

TEST(PollSchedule, WhereMissesTakeLongThereAreFewOfThem) {
  constexpr double kWait = 0.09;
  ArrivalEstimate estimate = Trained(FromSeconds(kWait));
  for (const auto& [miss, most] : {std::pair{0.0, 12}, {0.001, 4}, {0.003, 2}, {0.02, 2}}) {
    const Outcome outcome = Poll(estimate, FromSeconds(kWait), FromSeconds(miss));
    EXPECT_LE(outcome.misses, most) << miss;
    EXPECT_LE(ToSeconds(outcome.found), kWait * (1 + kPollGrowth)) << miss;
  }
}

TEST(PollSchedule, WhereTheWriterRingsNobodyAsksBefore) {
  using std::chrono::milliseconds;
  ArrivalEstimate estimate;
  EXPECT_EQ(estimate.latest(), Duration::zero());
  EXPECT_EQ(FirstRungPoll(estimate.latest()), kMinRungGap);
  for (const int arrival : {300, 200, 250}) estimate.Observe(std::nullopt, milliseconds(arrival));
  EXPECT_EQ(estimate.latest(), Duration(milliseconds(300)));
  EXPECT_EQ(FirstRungPoll(estimate.latest()), Duration(milliseconds(600)));
  for (int i = 0; i < 8; ++i) estimate.Observe(std::nullopt, milliseconds(200));
  EXPECT_EQ(estimate.latest(), Duration(milliseconds(200))) << "a slow one is forgotten";
}

TEST(PollSchedule, AWriterThatNeverRingsCostsFewMisses) {
  int misses = 0;
  for (Duration waited = FirstRungPoll({}); waited < kMaxPollWait; waited += NextRungGap(waited)) {
    ++misses;
  }
  EXPECT_LT(misses, 18);
  EXPECT_LT(misses, kMaxMissesPerObject);
}

RC_GTEST_PROP(PollSchedule, AnyHistoryKeepsTheBound, (const std::vector<uint32_t>& history)) {
  ArrivalEstimate estimate;
  for (const uint32_t milliseconds : history) {
    const Outcome outcome = Poll(estimate, std::chrono::milliseconds(milliseconds % 3'600'000));
    RC_ASSERT(outcome.misses <= kMaxMissesPerObject);
  }
}

}  // namespace
}  // namespace lambdadnn
