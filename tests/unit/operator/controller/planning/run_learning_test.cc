// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning/run_learning.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

// 100 iterations of 20 ms in steps and 10 ms in the exchange, and 2 s of evaluations.
Plan PlanOf(Placement placement, TransportKind transport) {
  Plan plan;
  plan.aggregation.placement = placement;
  plan.aggregation.transport = transport;
  plan.aggregation.layers = {1, 2};
  plan.predicted.iterations = 100;
  plan.predicted[Term::kCompute] = 0.02;
  plan.predicted[Term::kCommunication] = 0.01;
  plan.predicted[Term::kEvaluation] = 2;
  return plan;
}
Plan ServingPlan() { return PlanOf(Placement::kWorkers, TransportKind::kObjectStore); }
// Steps took half as long again, exchanges twice as long, evaluations half as long.
constexpr RunTimes kTook = {.iterations = 100, .compute = 3, .exchange = 2, .evaluation = 1};

TEST(FactorsShown, ComparesTimesWithThePrediction) {
  const RunFactors shown = FactorsShown({}, {}, ServingPlan(), kTook);
  EXPECT_DOUBLE_EQ(shown.compute, 1.5);
  EXPECT_DOUBLE_EQ(shown.evaluation, 0.5);
  EXPECT_EQ(shown, (RunFactors{.compute = 1.5, .evaluation = 0.5, .store_workers = 2}));
}

TEST(FactorsShown, OfTheExchangeThatThePlanHas) {
  const auto exchange = [](Placement placement, TransportKind transport, int workers = 2) {
    Plan plan = PlanOf(placement, transport);
    plan.aggregation.layers = {1, workers};
    return FactorsShown({}, {}, plan, {.iterations = 100, .exchange = 2});
  };
  EXPECT_EQ(exchange(Placement::kDedicated, TransportKind::kObjectStore), RunFactors{.store = 2});
  EXPECT_EQ(exchange(Placement::kDedicated, TransportKind::kObjectStore, 1),
            RunFactors{.store = 2});
  EXPECT_EQ(exchange(Placement::kWorkers, TransportKind::kObjectStore),
            RunFactors{.store_workers = 2});
  EXPECT_EQ(exchange(Placement::kWorkers, TransportKind::kObjectStore, 1), RunFactors{.alone = 2});
  EXPECT_EQ(exchange(Placement::kDedicated, TransportKind::kDirect), RunFactors{.direct = 2});
  EXPECT_EQ(exchange(Placement::kWorkers, TransportKind::kDirect), RunFactors{.direct_workers = 2});
}

TEST(FactorsShown, ContainWhatTheProfileAndItsCorrectionsSaidAlready) {
  WorkloadProfile profile;
  profile.run = {.compute = 1.2, .evaluation = 0.5, .store_workers = 0.8, .direct = 7};
  const TimeFactors corrections = {.compute = 2, .exchange = 3, .evaluation = 4};
  const RunFactors shown = FactorsShown(profile, corrections, ServingPlan(), kTook);
  EXPECT_DOUBLE_EQ(shown.compute, 1.2 * 2 * 1.5);
  EXPECT_DOUBLE_EQ(shown.evaluation, 0.5 * 2 * 4 * 0.5);
  EXPECT_DOUBLE_EQ(shown.store_workers, 4) << "4.8, of another machine";
  EXPECT_EQ(shown.direct, 0);
}

TEST(FactorsShown, OfTheIterationsThatWereDone) {
  RunTimes took = kTook;
  took.iterations = 50;  // stopped early
  const RunFactors shown = FactorsShown({}, {}, ServingPlan(), took);
  EXPECT_DOUBLE_EQ(shown.compute, 3);
  EXPECT_DOUBLE_EQ(shown.evaluation, 1);
  took.iterations = 19;
  EXPECT_EQ(FactorsShown({}, {}, ServingPlan(), took), RunFactors{}) << "too few";
  EXPECT_EQ(FactorsShown({}, {}, Plan{}, kTook), RunFactors{}) << "nothing was predicted";
  EXPECT_EQ(FactorsShown({}, {}, ServingPlan(), {.iterations = 100}), RunFactors{});
}

TEST(LearnFromRun, GoesHalfTheWayFromRunsBeforeIt) {
  KeptProfile kept;
  kept.profile.training_rate.slope = 2;
  const WorkloadProfile profile = kept.profile;
  ASSERT_TRUE(LearnFromRun(profile, {.compute = 1.5, .store = 2}, &kept));
  EXPECT_EQ(kept.profile.run, (RunFactors{.compute = 1.5, .store = 2})) << "the first one";
  ASSERT_TRUE(LearnFromRun(profile, {.compute = 6, .direct = 3}, &kept));
  EXPECT_DOUBLE_EQ(kept.profile.run.compute, 3);
  EXPECT_EQ(kept.profile.run.store, 2);
  EXPECT_EQ(kept.profile.run.direct, 3);
}

TEST(LearnFromRun, LeavesAProfileThatTheRunWasNotPlannedWith) {
  KeptProfile kept;
  kept.profile.training_rate.slope = 2;
  WorkloadProfile other = kept.profile;
  other.training_rate.slope = 3;
  const KeptProfile before = kept;
  EXPECT_FALSE(LearnFromRun(other, {.compute = 1.5}, &kept));
  EXPECT_EQ(kept, before);
  // One job may have seen other starts than another.
  other = kept.profile;
  other.cold_start_seconds = 7;
  EXPECT_TRUE(LearnFromRun(other, {.compute = 1.5}, &kept));
}

}  // namespace
}  // namespace lambdadnn
