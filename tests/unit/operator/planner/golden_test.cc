// SPDX-License-Identifier: Apache-2.0
// The three workloads of docs/theory.md under λDNN's model, against known facts.
#include <gtest/gtest.h>

#include "tests/unit/operator/planner/planner_fixtures.h"

namespace lambdadnn {
namespace {

TEST(LambdaDnnGolden, OneDCnnTakesThePublishedTimes) {
  PlannerInput input = OneDCnn(10);
  EXPECT_NEAR(PredictPlan(input, 14, 3008)->predicted.seconds, 52.7, 0.05);
  EXPECT_NEAR(PredictPlan(input, 23, 3008)->predicted.seconds, 44.8, 0.05);
}

TEST(LambdaDnnGolden, TheParameterServersPriceMakesFewFunctionsDear) {
  PlannerInput input = OneDCnn(10);
  EXPECT_NEAR(PredictPlan(input, 1, 960)->predicted.cost, 0.081, 0.0005);
  EXPECT_NEAR(PredictPlan(input, 14, 960)->predicted.cost, 0.034, 0.0005);
}

}  // namespace
}  // namespace lambdadnn
