// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/session/slice_budget.h"

#include <gtest/gtest.h>

#include "common/base/random.h"
#include "common/base/runtime.h"
#include "common/plan/sync_policy.h"
#include "tests/support/virtual_runtime.h"

namespace lambdadnn {
namespace {

TEST(SliceBudget, WithoutABudgetNothingEnds) {
  VirtualRuntime time;
  const SliceBudget budget(time.clock, time.clock.Now(), 0);
  time.clock.SleepFor(std::chrono::hours(100));
  EXPECT_FALSE(budget.MustStop());
}

TEST(SliceBudget, StopsEarlyEnoughForThreeIterationsAndTheCheckpoint) {
  VirtualRuntime time;
  SliceBudget budget(time.clock, time.clock.Now(), 100);
  for (int i = 0; i < 10; ++i) budget.IterationTook(2);
  budget.EndWorkTook(4);
  EXPECT_NEAR(budget.StopSeconds(), 0.1 + SyncPolicy::kStopSafetyFactor * (3 * 2 + 4), 1e-9);
  time.clock.SleepFor(FromSeconds(100 - budget.StopSeconds() - 0.01));
  EXPECT_FALSE(budget.MustStop());
  time.clock.SleepFor(FromSeconds(0.02));
  EXPECT_TRUE(budget.MustStop());
}

TEST(SliceBudget, TheSlowestPerCentDoesNotDecide) {
  VirtualRuntime time;
  SliceBudget budget(time.clock, time.clock.Now(), 100);
  for (int i = 0; i < 99; ++i) budget.IterationTook(0.1);
  budget.IterationTook(30);
  EXPECT_LT(budget.StopSeconds(), 1);
  for (int i = 0; i < 300; ++i) budget.IterationTook(5);
  EXPECT_GT(budget.StopSeconds(), 15) << "a new pace is followed";
}

}  // namespace
}  // namespace lambdadnn
