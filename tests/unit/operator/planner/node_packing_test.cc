// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/node_packing.h"

#include <gtest/gtest.h>

#include <random>

#include "operator/planner/planner.h"

namespace lambdadnn {
namespace {

using Machine = Platform::Node;

TEST(FitOnNodes, WhatIsEnoughInAllMayFindNone) {
  const std::vector<Machine> nodes = {{4096, 600, 99}, {4096, 500, 99}};
  EXPECT_FALSE(FitOnNodes(nodes, {2, 704, 378}, {1, 576, 307}));
  EXPECT_TRUE(FitOnNodes(nodes, {1, 704, 378}, {1, 576, 307}));
  EXPECT_TRUE(FitOnNodes(nodes, {2, 704, 378}, {1, 576, 100}));
}

TEST(FitOnNodes, EachResourceCounts) {
  EXPECT_TRUE(FitOnNodes({{1000, 1000, 4}}, {2, 250, 250}, {2, 250, 250}));
  EXPECT_FALSE(FitOnNodes({{999, 1000, 4}}, {2, 250, 250}, {2, 250, 250}));
  EXPECT_FALSE(FitOnNodes({{1000, 999, 4}}, {2, 250, 250}, {2, 250, 250}));
  EXPECT_FALSE(FitOnNodes({{1000, 1000, 3}}, {2, 250, 250}, {2, 250, 250}));
  EXPECT_TRUE(FitOnNodes({{1000, 0, 4}}, {2, 250, 0}, {2, 250, 0})) << "pods without CPU";
  EXPECT_TRUE(FitOnNodes({{10, 10, 1}}, {0, 100, 100}, {0, 100, 100}));
  EXPECT_FALSE(FitOnNodes({}, {1, 1, 1}, {}));
  EXPECT_TRUE(FitOnNodes({{999, 999, 9, 2}, {999, 999, 9}}, {2, 100, 100, 1}, {1, 100, 100}));
  EXPECT_FALSE(FitOnNodes({{999, 999, 9, 1}, {999, 999, 9}}, {2, 100, 100, 1}, {1, 100, 100}));
  EXPECT_FALSE(FitOnNodes({{240, 999, 9, 1}, {199, 999, 9}}, {1, 150, 0, 1}, {1, 100, 0}))
      << "a server may take the memory beside the GPU first";
}

TEST(FitOnNodes, EachGroupIsOnNodesThatTakeIt) {
  const Machine for_workers{999, 999, 9, 1, true, false};
  const Machine for_servers{999, 999, 9, 0, false, true};
  const PodGroup workers{2, 100, 100};
  const PodGroup servers{9, 100, 100};
  EXPECT_TRUE(FitOnNodes({for_workers, for_servers}, workers, servers));
  EXPECT_FALSE(FitOnNodes({for_workers}, workers, servers));
  EXPECT_FALSE(FitOnNodes({for_servers}, workers, servers));
  EXPECT_TRUE(FitOnNodes({for_workers}, workers, {}));
  EXPECT_FALSE(FitOnNodes({for_workers, for_workers, for_servers}, workers, {10, 100, 100}));
}

TEST(FitOnNodes, ASchedulerThatSpreadsMayLeaveNoMachineForTheLargest) {
  // One worker on each machine leaves 500 on both; both on one would leave 1000 on the other.
  EXPECT_FALSE(FitOnNodes({{1000, 0, 9}, {1000, 0, 9}}, {2, 500, 0}, {1, 900, 0}));
  // One that fills up would put the small ones before the large one on the machine that fits it.
  EXPECT_FALSE(FitOnNodes({{1000, 0, 9}, {950, 0, 9}}, {2, 100, 0}, {2, 900, 0}));
}

// Whatever is promised, no way of placing that was tried breaks.
TEST(FitOnNodes, HoldsForRandomOrdersOfEqualPods) {
  std::mt19937 random(1);
  const auto below = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  for (int turn = 0; turn < 2000; ++turn) {
    std::vector<Machine> nodes(1 + static_cast<size_t>(below(5)));
    for (Machine& node : nodes) {
      node = {100.0 + below(900), 100.0 + below(900), 1.0 + below(8)};
    }
    const PodGroup pods{1 + below(8), 50.0 + below(200), 50.0 + below(200)};
    if (!FitOnNodes(nodes, pods, {})) continue;
    for (int placed = 0; placed < pods.count; ++placed) {
      std::vector<size_t> open;
      for (size_t i = 0; i < nodes.size(); ++i) {
        const Machine& each = nodes[i];
        if (each.memory_mib >= pods.memory_mib && each.milli_cpu >= pods.milli_cpu &&
            each.pods >= 1) {
          open.push_back(i);
        }
      }
      ASSERT_FALSE(open.empty()) << "turn " << turn;
      Machine& chosen = nodes[open[static_cast<size_t>(below(static_cast<int>(open.size())))]];
      chosen.memory_mib -= pods.memory_mib;
      chosen.milli_cpu -= pods.milli_cpu;
      chosen.pods -= 1;
    }
  }
}

PlannerInput OnTwoNodes() {
  PlannerInput input;
  input.profile.training_samples = 12000;
  input.profile.model_bytes = 407080;
  input.profile.training_rate = {.slope = 2};
  input.limits.global_batch_size = 120;
  input.limits.epochs = 3;
  input.limits.max_functions = 4;
  input.aggregation.placement = Placement::kDedicated;
  Platform& platform = input.platform;
  platform.memory = {.min_mib = 128, .max_mib = 1024, .step_mib = 64};
  platform.milli_cpu_per_gib = 565;
  platform.sidecar_memory_mib = 64;
  platform.total_memory_mib = 1993;
  platform.max_functions = 64;
  platform.function_timeout_seconds = 300;
  platform.prices.gib_second = 0.0000166667;
  platform.machine_sidecar_memory_mib = 64;
  platform.machine_sidecar_milli_cpu = 25;
  input.objective.deadline_seconds = 300;
  return input;
}

TEST(FitOnNodes, NoPlanIsChosenThatNodesDoNotHold) {
  PlannerInput input = OnTwoNodes();
  const PlanCandidate anywhere = MakePlan(input).value().chosen;
  input.platform.nodes = {{4096, 600, 99}, {4096, 500, 99}};
  const PlanCandidate held = MakePlan(input).value().chosen;
  EXPECT_GE(held.predicted.cost, anywhere.predicted.cost);
  const auto pods = [&](int count, int mib) {
    return PodGroup{count, mib + 64.0, mib * 565 / 1024.0 + 25};
  };
  const int servers = held.aggregation.server_functions();
  EXPECT_TRUE(FitOnNodes(input.platform.nodes, pods(held.functions, held.memory_mib),
                         pods(servers, held.server_memory_mib)));
  EXPECT_FALSE(FitOnNodes(input.platform.nodes, pods(anywhere.functions, anywhere.memory_mib),
                          pods(servers, anywhere.server_memory_mib)))
      << "the case asks nothing";
}

TEST(FitOnNodes, WithoutAnyPlanTheNodesAreToldOf) {
  PlannerInput input = OnTwoNodes();
  input.objective = {};
  input.objective.fixed = Objective::Fixed{2, 640};
  input.platform.nodes = {{4096, 600, 99}, {4096, 500, 99}};
  const PlanningOutcome outcome = MakePlan(input).value();
  EXPECT_FALSE(outcome.feasible);
  EXPECT_EQ(outcome.certificate.binding, std::vector<Limit>{Limit::kNodes});
}

}  // namespace
}  // namespace lambdadnn
