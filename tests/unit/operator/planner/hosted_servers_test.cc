// SPDX-License-Identifier: Apache-2.0
// The extended model where workers serve, and where functions exchange directly.
#include <gtest/gtest.h>

#include <cmath>

#include "common/base/statistics.h"
#include "common/plan/slice_cost.h"
#include "operator/planner/extended_model.h"
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

TEST(HostedServers, AnExchangeDisturbsTheStepsOfFunctionsThatAreNotAlone) {
  for (const Placement placement : {Placement::kDedicated, Placement::kWorkers}) {
    for (const int functions : {1, 2}) {
      PlannerInput input = SimpleOnWorkers(functions);
      input.aggregation.placement = placement;
      const double alone = Predicted(input).predicted[Term::kCompute];
      input.profile.disturbed_cpu_seconds = 0.01;
      const bool exchanges = functions > 1 || placement == Placement::kDedicated;
      EXPECT_NEAR(Predicted(input).predicted[Term::kCompute] - alone, exchanges ? 0.01 : 0, 1e-9);
    }
  }
}

TEST(HostedServers, WorkersThatServeArePaidOnceAndSendLess) {
  PlannerInput input = SimpleOnWorkers(4);
  input.platform.prices.put_request = 1;
  input.aggregation.shards = 1;
  const PlanCandidate together = Predicted(input);
  // 8 iterations: 3 gradients and the weights each; a GiB a worker.
  const double puts =
      8 * 4 + SliceRequests(together.aggregation, {.kept_checkpoints = 2}).put_requests;
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
  // Three copies of the vector in a worker, of which its server hands one on; weights and two of
  // the optimizer, and these again in the checkpoint that is being written.
  EXPECT_EQ(smallest(), 1024);
  input.aggregation.placement = Placement::kDedicated;
  EXPECT_EQ(smallest(), 384);
}

TEST(DirectTransport, TheStoreNeitherDelaysNorCharges) {
  for (const Placement placement : {Placement::kDedicated, Placement::kWorkers}) {
    PlannerInput input = SimpleOnWorkers(4);
    input.aggregation.placement = placement;
    input.aggregation.shards = 1;
    input.aggregation.transport = TransportKind::kDirect;
    input.platform.prices.put_request = input.platform.prices.get_request = 1;
    const PlanCandidate fast = Predicted(input);
    EXPECT_EQ(fast.aggregation.transport, TransportKind::kDirect);
    input.platform.store_request_seconds = input.platform.store_request_seconds.Or(0) + 1;
    const PlanCandidate slow = Predicted(input);
    EXPECT_EQ(slow.predicted[Term::kCommunication], fast.predicted[Term::kCommunication]);
    input.aggregation.transport = TransportKind::kObjectStore;
    const PlanCandidate stored = Predicted(input);
    EXPECT_GT(stored.predicted[Term::kCommunication], slow.predicted[Term::kCommunication] + 1);
    EXPECT_GT(stored.predicted.cost, slow.predicted.cost + 8 * 4);
  }
}

TEST(DirectTransport, FunctionsThatNoQuotaStopsWaitForEachOther) {
  PlannerInput input = SimpleOnWorkers(2);
  input.aggregation.transport = TransportKind::kDirect;
  input.aggregation.shards = 2;
  input.profile.model_bytes *= 2;
  input.profile.direct = kAssumedDirect;
  const auto added = [&input] {
    PlannerInput waiting = input;
    waiting.profile.direct.pair_wait_seconds = 0.01;
    return Predicted(waiting).predicted.IterationSeconds() -
           Predicted(input).predicted.IterationSeconds();
  };
  EXPECT_NEAR(added(), 0.01, 1e-9);
  input.objective.fixed->functions = 4;
  EXPECT_NEAR(added(), 0.01 * ExpectedLargest(4 * 2) / ExpectedLargest(4), 1e-9);
  input.aggregation.placement = Placement::kDedicated;
  input.aggregation.layers = {1, 2, 4};
  EXPECT_NEAR(added(), 0.01 * std::sqrt(1.5) * ExpectedLargest(4 * 2) / ExpectedLargest(4), 1e-9);
  // What differs between hand-overs is a part of it.
  input.profile.direct.deviation_seconds = 1;
  EXPECT_EQ(added(), 0);
  input.profile.direct.deviation_seconds = 0;
  // They wait while their quotas stop them.
  input.platform.milli_cpu_per_gib = 250;
  input.platform.total_milli_cpu = 8000;
  EXPECT_EQ(added(), 0);
  input.platform.milli_cpu_per_gib = 0;
  input.aggregation.transport = TransportKind::kObjectStore;
  EXPECT_EQ(added(), 0);
}

TEST(DirectTransport, IsChosenWhereItIsMeasuredAndBetter) {
  PlannerInput input = SimpleOnWorkers(4);
  input.aggregation.transport.reset();
  input.platform.store_request_seconds = 0.01;
  EXPECT_EQ(Predicted(input).aggregation.transport, TransportKind::kObjectStore) << "not measured";
  input.profile.direct.hop_seconds = 0.001;
  EXPECT_EQ(Predicted(input).aggregation.transport, TransportKind::kDirect);
  input.profile.direct.hop_seconds = 1;
  EXPECT_EQ(Predicted(input).aggregation.transport, TransportKind::kObjectStore);
  // One function alone exchanges nothing.
  input = SimpleOnWorkers(1);
  input.aggregation.transport.reset();
  input.profile.direct.hop_seconds = 0.001;
  EXPECT_EQ(Predicted(input).aggregation.transport, TransportKind::kObjectStore);
}

TEST(DirectTransport, WhatWasWrittenStaysInMemory) {
  AggregationPlan plan;
  plan.layers = {1, 4};
  constexpr int64_t kParameters = 25 << 20;  // 100 MiB
  const double stored = NeededServerMib(plan, kParameters, {});
  EXPECT_EQ(ExchangeMibOfWorker(plan, kParameters, {}), 0);
  plan.transport = TransportKind::kDirect;
  EXPECT_EQ(ExchangeMibOfWorker(plan, kParameters, {}), 0) << "what it wrote is its gradient";
  EXPECT_EQ(NeededServerMib(plan, kParameters, {}), stored + 200);
  plan.placement = Placement::kWorkers;
  plan.layers = {1, 1};
  plan.transport = TransportKind::kObjectStore;
  const double alone = ExchangeMibOfWorker(plan, kParameters, {});
  EXPECT_GT(alone, 0);
}

}  // namespace
}  // namespace lambdadnn
