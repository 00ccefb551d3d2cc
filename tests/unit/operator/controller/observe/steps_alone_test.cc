// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/steps_alone.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

// Of each iteration a second of compute, and a tenth each of push, wait and pull.
ToldPhases After(int64_t iteration) {
  ToldPhases told{iteration, {}};
  const auto done = static_cast<double>(iteration);
  told.phases[Phase::kLoad].wall_seconds = 7;
  told.phases[Phase::kCompute].wall_seconds = done;
  for (const Phase each : {Phase::kPush, Phase::kWait, Phase::kPull}) {
    told.phases[each].wall_seconds = 0.1 * done;
  }
  return told;
}

TEST(StepsAlone, CountWhatEachWorkerSpentFromItsFirstLineOn) {
  StepsAlone steps;
  steps.ObserveMeasuring(false, Instant(FromSeconds(3)));
  steps.ObserveLine("worker-0", After(10), false);
  steps.ObserveLine("worker-1", After(11), false);
  EXPECT_EQ(steps.iterations(), 0);
  steps.ObserveLine("worker-0", After(14), false);
  steps.ObserveLine("worker-0", After(14), false);  // told again
  steps.ObserveLine("worker-1", After(13), false);
  EXPECT_EQ(steps.iterations(), 6);
  EXPECT_NEAR(steps.compute_seconds(), 6, 1e-9);
  EXPECT_NEAR(steps.exchange_seconds(), 1.8, 1e-9);
  // A further slice counts from zero.
  steps.ObserveLine("worker-0 again", After(2), false);
  steps.ObserveLine("worker-0 again", After(5), false);
  EXPECT_EQ(steps.iterations(), 9);
}

// Each takes 0.25 s, after iterations 4 and 8.
ToldPhases AfterEvaluation(int64_t iteration, int evaluations) {
  ToldPhases told = After(iteration);
  told.phases[Phase::kEvaluate].wall_seconds = 0.25 * evaluations;
  return told;
}

TEST(StepsAlone, AnEvaluationIsAWorkersFromOneLineToItsOwn) {
  StepsAlone steps;
  steps.ObserveMeasuring(false, Instant(FromSeconds(3)));
  EXPECT_EQ(steps.SecondsPerEvaluation(), 0);
  steps.ObserveLine("worker-0", AfterEvaluation(4, 1), true);  // since when is not known
  EXPECT_EQ(steps.SecondsPerEvaluation(), 0);
  steps.ObserveLine("worker-0", AfterEvaluation(8, 1), false);
  steps.ObserveLine("worker-0", AfterEvaluation(8, 2), true);
  steps.ObserveLine("worker-0", AfterEvaluation(8, 2), true);  // told again
  EXPECT_EQ(steps.iterations(), 4);
  EXPECT_NEAR(steps.SecondsPerEvaluation(), 0.25, 1e-9);
  steps.ObserveLine("worker-1", After(6), false);
  steps.ObserveLine("worker-1", AfterEvaluation(8, 1), true);
  EXPECT_NEAR(steps.SecondsPerEvaluation(), 0.25, 1e-9);
  EXPECT_EQ(steps.iterations(), 6);
}

TEST(StepsAlone, NothingCountsBesideOrAcrossAMeasurement) {
  StepsAlone steps;
  steps.ObserveLine("worker-0", After(1), false);
  EXPECT_FALSE(steps.since().has_value());
  steps.ObserveMeasuring(false, Instant(FromSeconds(3)));
  steps.ObserveMeasuring(false, Instant(FromSeconds(4)));
  EXPECT_EQ(steps.since(), Instant(FromSeconds(3)));
  steps.ObserveLine("worker-0", After(2), false);
  steps.ObserveLine("worker-0", After(3), false);
  EXPECT_EQ(steps.iterations(), 1);
  steps.ObserveMeasuring(true, Instant(FromSeconds(5)));
  EXPECT_FALSE(steps.since().has_value());
  EXPECT_EQ(steps.iterations(), 0);
  steps.ObserveLine("worker-0", After(9), false);
  steps.ObserveMeasuring(false, Instant(FromSeconds(6)));
  steps.ObserveLine("worker-0", After(12), false);
  EXPECT_EQ(steps.iterations(), 0);
  steps.ObserveLine("worker-0", After(13), false);
  EXPECT_EQ(steps.iterations(), 1);
  EXPECT_EQ(steps.since(), Instant(FromSeconds(6)));
}

}  // namespace
}  // namespace lambdadnn
