// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/iteration_simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/operator/planner/chooser.h"

namespace lambdadnn {
namespace {

AggregationPlan PlanOf(std::vector<int> layers) {
  AggregationPlan plan;
  plan.layers = std::move(layers);
  return plan;
}

// A worker with a quarter of a core, 25 ms in each 100 ms.
CpuLimits Quarter() { return {.worker_share = 0.25, .period_seconds = 0.1}; }

TEST(IterationSimulation, WithWholeCoresTheStagesFollowEachOther) {
  const IterationWork work{.step_cpu = 0.1,
                           .exchange = {.worker_push = 0.01,
                                        .worker_pull = 0.02,
                                        .server_child = 0.003,
                                        .server_push = 0.004,
                                        .server_update = 0.005},
                           .hop = 0.05,
                           .straggler = 0.006};
  const SimulatedIteration simulated = SimulateIteration(PlanOf({1, 3}), work, {});
  EXPECT_NEAR(simulated.compute_seconds, 0.1, 1e-9);
  EXPECT_NEAR(simulated.seconds,
              0.1 + 0.01 + 0.05 + 3 * 0.003 + 0.004 + 0.005 + 0.05 + 0.006 + 0.02, 1e-9);
}

TEST(IterationSimulation, ALayerMoreIsAHopAndAMergeMore) {
  const IterationWork work{
      .step_cpu = 0.1, .exchange = {.server_child = 0.003, .server_push = 0.004}, .hop = 0.05};
  EXPECT_NEAR(SimulateIteration(PlanOf({1, 2, 4}), work, {}).seconds,
              0.1 + 3 * 0.05 + 2 * (2 * 0.003 + 0.004), 1e-9);
}

TEST(IterationSimulation, AStepBeyondTheQuotaTakesItsMeanSpeed) {
  const SimulatedIteration simulated =
      SimulateIteration(PlanOf({1, 1}), {.step_cpu = 0.1}, Quarter());
  EXPECT_NEAR(simulated.seconds, 0.4, 0.02);
  EXPECT_NEAR(simulated.compute_seconds, 0.4, 0.02);
}

TEST(IterationSimulation, AStepWithinTheQuotaIsAsFastAsACore) {
  const SimulatedIteration simulated =
      SimulateIteration(PlanOf({1, 1}), {.step_cpu = 0.02, .hop = 0.1}, Quarter());
  EXPECT_NEAR(simulated.compute_seconds, 0.02, 1e-9);
  EXPECT_NEAR(simulated.seconds, 0.22, 1e-9);
}

// 30 ms of CPU in an iteration of about 180 ms: 25 ms a period are enough on average, but without a
// burst what the wait has left over of one period is lost in the next.
TEST(IterationSimulation, ABurstKeepsWhatTheWaitLeavesOver) {
  CpuLimits limits = Quarter();
  const IterationWork work{.step_cpu = 0.03, .hop = 0.075};
  const double without = SimulateIteration(PlanOf({1, 1}), work, limits).compute_seconds;
  limits.burst_seconds = 0.1;
  const double with = SimulateIteration(PlanOf({1, 1}), work, limits).compute_seconds;
  EXPECT_NEAR(with, 0.03, 1e-9);
  EXPECT_GT(without, 0.04);
}

// Two iterations fit into the 5 ms of a period. In proportion to their CPU time steps would have
// 14 / 22 of the stalls, 5.6 of 8.8 ms in all.
TEST(IterationSimulation, WhatAStepLeavesOfItsSliceIsNotThereForItsPush) {
  const CpuLimits limits{.worker_share = 0.25, .period_seconds = 0.02};
  const IterationWork work{.step_cpu = 0.0014,
                           .exchange = {.worker_push = 0.0004, .worker_pull = 0.0004}};
  const SimulatedIteration simulated = SimulateIteration(PlanOf({1, 1}), work, limits);
  EXPECT_NEAR(simulated.seconds, 0.0088, 0.0008);
  EXPECT_LT(simulated.compute_seconds, 0.004);
  EXPECT_GE(simulated.compute_seconds, 0.0014);
}

TEST(IterationSimulation, WorkersThatShareACoreComputeInTurns) {
  CpuLimits limits;
  limits.cores = 1;
  const SimulatedIteration simulated = SimulateIteration(PlanOf({1, 2}), {.step_cpu = 0.1}, limits);
  EXPECT_NEAR(simulated.seconds, 0.2, 1e-9);
}

TEST(IterationSimulation, AServersQuotaIsWaitedFor) {
  CpuLimits limits;
  limits.server_share = 0.1;
  const IterationWork work{.step_cpu = 0.001,
                           .exchange = {.server_child = 0.01, .server_seconds = 0.04}};
  const SimulatedIteration simulated = SimulateIteration(PlanOf({1, 4}), work, limits);
  EXPECT_NEAR(simulated.seconds, 0.4, 0.05);
  EXPECT_NEAR(simulated.compute_seconds, 0.001, 1e-9);
}

// Fourteen of them fit into a period. What some more of them take depends on where a stall falls.
TEST(IterationSimulation, ShortIterationsAreCountedOverWholePeriods) {
  const CpuLimits limits{.worker_share = 0.5,
                         .server_share = 0.25,
                         .period_seconds = 0.02,
                         .burst_seconds = 0.02,
                         .cores = 2};
  for (const double server_push : {2e-4, 2.5e-4, 3e-4, 4e-4}) {
    const IterationWork work{.step_cpu = 3.4e-4,
                             .exchange = {.worker_push = 1.3e-4,
                                          .worker_pull = 1.2e-4,
                                          .server_child = 1e-4,
                                          .server_push = server_push}};
    const double least = std::max(5.9e-4 / 0.5, (1e-4 + server_push) / 0.25);
    EXPECT_NEAR(SimulateIteration(PlanOf({1, 1}), work, limits).seconds, least, 0.06 * least)
        << server_push;
  }
}

// Gaps between questions are at most 12 % of the time waited (common/plan/poll_schedule.h), and
// there is one object in each direction.
TEST(IterationSimulation, AnObjectIsThereFromTheNextQuestionOn) {
  const IterationWork hints{.step_cpu = 0.1, .hop = 0.05};
  IterationWork questions = hints;
  questions.miss = {.seconds = 0.001};
  const double at_once = SimulateIteration(PlanOf({1, 2}), hints, {}).seconds;
  const double asked = SimulateIteration(PlanOf({1, 2}), questions, {}).seconds;
  EXPECT_GT(asked, at_once);
  EXPECT_LT(asked, at_once * 1.12);
}

TEST(IterationSimulation, QuestionsInVainTakeTheQuotaOfWhoAsks) {
  CpuLimits limits;
  limits.server_share = 0.1;
  IterationWork work{.step_cpu = 0.02,
                     .exchange = {.server_child = 0.001, .server_seconds = 0.004},
                     .hop = 0.02,
                     .miss = {.seconds = 0.001}};
  const double free = SimulateIteration(PlanOf({1, 4}), work, limits).seconds;
  work.miss.cpu_seconds = 0.0005;
  const double dear = SimulateIteration(PlanOf({1, 4}), work, limits).seconds;
  // At least one for each of four children, with a tenth of a core.
  EXPECT_GT(dear, free + 4 * 0.0005);
  work.miss.cpu_seconds = 1;  // asks once a period at most, and goes on
  EXPECT_GT(SimulateIteration(PlanOf({1, 4}), work, limits).seconds, dear);
}

// Of two workers at the limit of their quota one is ahead: it waits, and computes at full speed
// with what it has saved meanwhile; the other stalls. Formulas of means call all of it computing.
TEST(IterationSimulation, WhoIsAheadWaitsAndWhoIsLateStalls) {
  CpuLimits limits = Quarter();
  limits.burst_seconds = 0.1;
  const SimulatedIteration simulated =
      SimulateIteration(PlanOf({1, 2}), {.step_cpu = 0.04}, limits);
  EXPECT_NEAR(simulated.seconds, 0.16, 0.01);
  EXPECT_LT(simulated.compute_seconds, 0.14);
  EXPECT_GT(simulated.compute_seconds, 0.04);
}

TEST(IterationSimulation, ManyWorkersAreMergedByTheirServers) {
  const IterationWork work{.step_cpu = 0.1, .exchange = {.server_child = 0.01}};
  EXPECT_NEAR(SimulateIteration(PlanOf({1, 100}), work, {}).seconds, 0.1 + 100 * 0.01, 1e-9);
  // The busiest of the leaves has 10 workers, the root 10 leaves.
  EXPECT_NEAR(SimulateIteration(PlanOf({1, 10, 100}), work, {}).seconds, 0.1 + 20 * 0.01, 0.03);
}

// A machine that many workers and servers share is as busy with those of them that are simulated.
TEST(IterationSimulation, TheMachineIsSharedByAllOfThem) {
  CpuLimits limits;
  limits.cores = 4;
  EXPECT_NEAR(SimulateIteration(PlanOf({1, 64}), {.step_cpu = 0.1}, limits).seconds, 1.6, 1e-6);
}

AggregationPlan OnWorkers(int workers) {
  AggregationPlan plan = PlanOf({1, workers});
  plan.placement = Placement::kWorkers;
  plan.shards = plan.spread = workers;
  return plan;
}

// Half of the gradient is pushed and half of the weights pulled, and the rest copied; each root
// merges a child that it pulls and one that it has.
TEST(IterationSimulation, WhereWorkersServeWhatStaysInAFunctionIsCopied) {
  const IterationWork work{.step_cpu = 0.1,
                           .exchange = {.worker_push = 0.02,
                                        .worker_pull = 0.04,
                                        .server_child = 0.03,
                                        .server_push = 0.004,
                                        .server_update = 0.005,
                                        .kept = 0.001},
                           .hop = 0.05,
                           .straggler = 0.006};
  const double pushed = 0.01 + 0.001;
  // The own gradient comes first, while the other one is under way.
  const double merged = 0.03;
  const double weights = 0.004 + 0.005 + 0.001;
  EXPECT_NEAR(SimulateIteration(OnWorkers(2), work, {}).seconds,
              0.1 + pushed + 0.05 + merged + weights + 0.05 + 0.006 + 0.02 + 0.001, 1e-9);
}

// 20 ms of steps and 15 ms of servers' work are more than the 25 ms that a period has: all wait for
// the next one. Dedicated servers would have 25 ms of their own.
TEST(IterationSimulation, AServerStallsWithTheWorkerInItsFunction) {
  const IterationWork work{
      .step_cpu = 0.02, .exchange = {.server_child = 0.005, .worker_seconds = 0.015}, .hop = 0.001};
  AggregationPlan plan = OnWorkers(3);
  const double together = SimulateIteration(plan, work, Quarter()).seconds;
  EXPECT_NEAR(together, 0.035 * 4, 0.01);
  plan.placement = Placement::kDedicated;
  EXPECT_LT(SimulateIteration(plan, work, Quarter()).seconds, together * 0.8);
}

// Each of 8 simulated hosts serves one of 64 groups, whose server has 64 children.
TEST(IterationSimulation, ManyWorkersThatServeAreAsFewOfThem) {
  const IterationWork work{.step_cpu = 0.1, .exchange = {.server_child = 0.001}};
  EXPECT_NEAR(SimulateIteration(OnWorkers(64), work, {}).seconds, 0.1 + 0.064, 1e-9);
}

TEST(IterationSimulation, NothingGetsMoreThanItsQuota) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Chooser choose(seed);
    AggregationPlan plan = PlanOf({1, choose.Whole(1, 3), choose.Whole(4, 30)});
    if (choose.Chance(0.3)) {
      plan.placement = Placement::kWorkers;
      plan.shards = plan.spread = choose.Whole(1, plan.workers());
    }
    const CpuLimits limits{.worker_share = choose.Real(0.02, 1.2),
                           .server_share = choose.Real(0.02, 1.2),
                           .period_seconds = choose.Chance(0.5) ? 0.1 : 0.02,
                           .burst_seconds = choose.Chance(0.5) ? 0.02 : 0,
                           .cores = choose.Chance(0.5) ? choose.Real(1, 16) : 0};
    IterationWork work{.step_cpu = choose.Scale(1e-4, 10),
                       .exchange = {.worker_push = choose.Scale(1e-5, 0.1),
                                    .worker_pull = choose.Scale(1e-5, 0.1),
                                    .server_child = choose.Scale(1e-5, 0.01),
                                    .server_push = choose.Scale(1e-5, 0.01),
                                    .server_update = choose.Scale(1e-5, 0.01)},
                       .hop = choose.Scale(1e-4, 1)};
    if (plan.placement == Placement::kDedicated) {
      work.exchange.server_seconds =
          plan.FanIn(1) * work.exchange.server_child + work.exchange.server_push;
    }
    const SimulatedIteration simulated = SimulateIteration(plan, work, limits);
    // Of what workers serve half may stay in a function.
    const bool hosted = plan.placement == Placement::kWorkers;
    const double worker =
        work.step_cpu + (work.exchange.worker_push + work.exchange.worker_pull) * (hosted ? 0 : 1);
    const double bound =
        std::max(worker / std::min(1.0, limits.worker_share),
                 work.exchange.server_seconds / std::min(1.0, limits.server_share));
    // What was there at the beginning, over the fewest iterations that are counted.
    const double kept = (2 * limits.period_seconds + limits.burst_seconds) / 6;
    EXPECT_GE(simulated.seconds, bound * 0.98 - kept) << "seed " << seed;
    EXPECT_GE(simulated.seconds, worker + (hosted ? 1 : 3) * work.hop - 1e-9) << "seed " << seed;
    EXPECT_GE(simulated.compute_seconds, work.step_cpu * 0.98) << "seed " << seed;
    EXPECT_LE(simulated.compute_seconds, simulated.seconds) << "seed " << seed;
    EXPECT_EQ(SimulateIteration(plan, work, limits).seconds, simulated.seconds);
  }
}

}  // namespace
}  // namespace lambdadnn
