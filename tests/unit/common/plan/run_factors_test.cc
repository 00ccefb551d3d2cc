// SPDX-License-Identifier: Apache-2.0
#include "common/plan/run_factors.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

AggregationPlan PlanOf(Placement placement, TransportKind transport) {
  AggregationPlan plan;
  plan.placement = placement;
  plan.transport = transport;
  plan.layers = {1, 2};
  return plan;
}
const AggregationPlan kStore = PlanOf(Placement::kDedicated, TransportKind::kObjectStore);
const AggregationPlan kDirectWorkers = PlanOf(Placement::kWorkers, TransportKind::kDirect);

TEST(RunFactors, AnExchangeTakesWhatRunsOfItsKindShowed) {
  const RunFactors factors = {.compute = 7, .store = 0.5, .direct_workers = 3};
  EXPECT_EQ(factors.ExchangeFactor(kStore), 0.5);
  EXPECT_EQ(factors.ExchangeFactor(kDirectWorkers), 3);
}

TEST(RunFactors, OneThatNoRunHasShownTakesTheMeanOfTheOthers) {
  EXPECT_EQ((RunFactors{.direct_workers = 1.25}).ExchangeFactor(kStore), 1.25);
  EXPECT_DOUBLE_EQ((RunFactors{.alone = 2, .direct = 0.5}).ExchangeFactor(kStore), 1);
  EXPECT_DOUBLE_EQ((RunFactors{.alone = 2, .store_workers = 8}).ExchangeFactor(kStore), 4);
  EXPECT_EQ((RunFactors{.compute = 2, .evaluation = 3}).ExchangeFactor(kStore), 1);
}

TEST(RunFactors, NoneIsBelowTheLeast) {
  EXPECT_EQ((RunFactors{}).Least(), 1);
  EXPECT_EQ((RunFactors{.compute = 2, .store = 3}).Least(), 1);
  EXPECT_EQ((RunFactors{.compute = 0.75}).Least(), 0.75);
  const RunFactors factors = {.compute = 0.75, .alone = 0.5, .direct = 1.5};
  EXPECT_EQ(factors.Least(), 0.5);
  EXPECT_GE(factors.ExchangeFactor(kStore), factors.Least());
}

}  // namespace
}  // namespace lambdadnn
