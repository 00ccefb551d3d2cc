// SPDX-License-Identifier: Apache-2.0
// The extended model where workers serve.
#include <gtest/gtest.h>

#include "tests/unit/operator/planner/simple_input.h"

namespace lambdadnn {
namespace {

PlannerInput SimpleOnWorkers(int functions) {
  PlannerInput input = Simple();
  input.objective.fixed->functions = functions;
  input.aggregation.placement = Placement::kWorkers;
  return input;
}

TEST(HostedServers, OneFunctionThatServesExchangesNothing) {
  PlannerInput input = SimpleOnWorkers(1);
  input.platform.store_request_seconds = 1;
  input.platform.store_bytes_per_second = 1000;
  const PlanCandidate alone = Predicted(input);
  EXPECT_EQ(alone.predicted[Term::kCommunication], 0);
  EXPECT_EQ(alone.server_memory_mib, 0);
  // The merge, the update and two copies of the gradient and of the weights: four passes and two.
  input.profile.merge_bytes_per_second = 65536;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kCommunication], 2 + 2 * 2);
}

TEST(HostedServers, WorkersThatServeArePaidOnceAndSendLess) {
  PlannerInput input = SimpleOnWorkers(4);
  input.platform.prices.put_request = 1;
  input.aggregation.shards = 1;
  const PlanCandidate together = Predicted(input);
  // 8 iterations: 3 gradients and the weights each; a GiB a worker.
  const double puts = 8 * 4;
  EXPECT_DOUBLE_EQ(together.predicted.cost, 4 * together.predicted.seconds + puts);
  input.aggregation.placement = Placement::kDedicated;
  EXPECT_GT(Predicted(input).predicted.cost, together.predicted.cost);
}

TEST(HostedServers, AWorkerHasMemoryForItsServers) {
  PlannerInput input = SimpleOnWorkers(1);
  input.profile.model_bytes = 100 * 1024 * 1024;
  input.limits.optimizer_state_vectors = 2;
  input.objective = {};
  input.objective.budget = 1e9;
  input.limits.max_functions = 1;
  const auto smallest = [&] { return MakePlan(input).value().chosen.memory_mib; };
  input.platform.memory = {.min_mib = 128, .max_mib = 2048, .step_mib = 128};
  // Five copies of the vector in a worker; weights, sums, two of the optimizer and what arrives in
  // a server.
  EXPECT_EQ(smallest(), 1024);
  input.aggregation.placement = Placement::kDedicated;
  EXPECT_EQ(smallest(), 512);
}

}  // namespace
}  // namespace lambdadnn
