// SPDX-License-Identifier: Apache-2.0
// What deciding by the test set takes.
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/planner/assumptions.h"
#include "tests/unit/operator/planner/simple_input.h"

namespace lambdadnn {
namespace {

TEST(EvaluationPlan, DecisionsByTheTestSetAreInTimeAndBill) {
  PlannerInput input = Simple();
  input.limits.epochs = 5;
  input.limits.evaluate_every = 2;  // after epochs 2, 4 and 5
  input.profile.evaluation_samples = 40;
  input.profile.evaluation_rate = {.intercept = 10};
  input.profile.checkpoint_cpu_seconds = 0.25;
  input.profile.store_request_seconds = 0.5;
  input.platform.prices.put_request = 1;
  input.platform.prices.get_request = 100;
  const PlanCandidate without = Predicted(input);
  const auto shards = without.aggregation.shards;
  input.limits.early_stopping = true;  // all but the last, which has nothing to decide
  const PlanCandidate stopping = Predicted(input);
  EXPECT_NEAR(stopping.predicted[Term::kEvaluation] - without.predicted[Term::kEvaluation], 2 * 0.5,
              1e-9);
  EXPECT_EQ(stopping.bill.put_requests - without.bill.put_requests, 2 * 4);
  EXPECT_EQ(stopping.bill.get_requests - without.bill.get_requests, 2 * 4);
  EXPECT_EQ(stopping.predicted.iterations, without.predicted.iterations) << "all epochs";
  input.limits.keep_best = true;
  const PlanCandidate keeping = Predicted(input);
  // Two checkpoints more, each of which another one makes way for, and the best model. It is read
  // at the end, and the manifests of those that stay at each deletion.
  const int manifest = 1 + shards;
  EXPECT_EQ(keeping.bill.put_requests - without.bill.put_requests,
            3 * 4 + 2 * (shards + 2) + 2 + 1);
  EXPECT_EQ(keeping.bill.get_requests - without.bill.get_requests,
            3 * 4 + 2 * 2 * shards + 2 * 2 * manifest + 2 * manifest + shards);
  EXPECT_NEAR(keeping.predicted[Term::kCheckpoint] - without.predicted[Term::kCheckpoint], 2 * 0.25,
              1e-9);
}

TEST(EvaluationPlan, SaysThatItIsForAllEpochs) {
  PlannerInput input = Simple();
  const auto told = [&] {
    const auto assumptions = AssumptionsOf(input);
    return std::any_of(assumptions.begin(), assumptions.end(), [](const Assumption& each) {
      return each.field == "training.earlyStopping" &&
             each.taken == "no evaluation ends the training early: all epochs are planned for";
    });
  };
  EXPECT_FALSE(told());
  input.limits.early_stopping = true;
  EXPECT_TRUE(told());
}

}  // namespace
}  // namespace lambdadnn
