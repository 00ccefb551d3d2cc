// SPDX-License-Identifier: Apache-2.0
// Feng's layers and model: the paper's figures, a prediction by hand, and the exact search against
// every tree.
#include "operator/planner/feng_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "operator/planner/candidate.h"
#include "operator/planner/merge_tree.h"
#include "operator/planner/wording.h"
#include "tests/unit/operator/planner/chooser.h"
#include "tests/unit/operator/planner/planner_fixtures.h"

namespace lambdadnn {
namespace {

using Layers = std::vector<int>;

TEST(MergeTree, FanInsByHand) {
  EXPECT_DOUBLE_EQ(MeanFanIns({1, 5, 22, 100}), 5 + 22 / 5.0 + 100 / 22.0);
  EXPECT_EQ(LargestFanIns({1, 5, 22, 100}), 5 + 5 + 5);
  EXPECT_EQ(LargestFanIns({1, 1}), 1);
  // Figure 4 of the paper.
  EXPECT_EQ(LargestFanIns({1, 6}), 6);
  EXPECT_EQ(LargestFanIns({1, 2, 6}), 5);
}

TEST(MergeTree, TheBestOfEquation1IsThePapers) {
  EXPECT_EQ(LeastMeanTree(100, 2), (Layers{1, 5, 22, 100}));
  EXPECT_EQ(LeastMeanTree(100, 1), (Layers{1, 10, 100}));
  EXPECT_EQ(LeastMeanTree(1, 2), (Layers{1, 1, 1, 1}));
  EXPECT_NEAR(LeastMeanFanIns(100, 2), 3 * std::cbrt(100.0), 1e-9);
  EXPECT_DOUBLE_EQ(LeastMeanFanIns(100, 1), 20);
  for (const int n : {2, 7, 50, 200}) {
    EXPECT_GE(MeanFanIns(LeastMeanTree(n, 2)), LeastMeanFanIns(n, 2) * (1 - 1e-12)) << n;
  }
}

TEST(MergeTree, WholeFanInsHaveAnotherBest) {
  const std::vector<MergeTree> trees = BestMergeTrees(100, false);
  ASSERT_EQ(trees.size(), 3u);
  EXPECT_EQ(trees[0].layers, (Layers{1, 100}));
  EXPECT_EQ(trees[1].layers, (Layers{1, 10, 100}));
  EXPECT_EQ(trees[2].layers, (Layers{1, 4, 20, 100}));
  EXPECT_EQ(trees[2].fan_ins, 14);
  EXPECT_EQ(trees[2].servers, 0);
  // Servers that are paid for: more trees can be best, the one with fewest first.
  const std::vector<MergeTree> paid = BestMergeTrees(100, true);
  EXPECT_GT(paid.size(), 3u);
  EXPECT_EQ(paid.front().servers, 1);
}

// R = 100/s and B = 80 MB/s at 1,024 MiB, 10 ms a request, merges at 400 MB/s.
PlannerInput SmallFeng(int functions) {
  PlannerInput input = Workload(0, 1000, 8e6, 10, 1000, {.slope = 100.0 / 1024}, 128, 2);
  input.options.model = PredictionModel::kFeng;
  input.objective = Objective{};
  input.objective.fixed = Objective::Fixed{functions, 1024};
  input.profile.merge_bytes_per_second = 400e6;
  input.platform.store_bytes_per_second = 0;
  input.platform.function_store_intercept = 80e6;
  input.platform.store_request_seconds = 0.01;
  input.platform.prices.gib_second = 2e-5;
  return input;
}

TEST(FengModel, OnePredictionByHand) {
  // [1, 4]: t_w = 0.11 s, t_m = 0.13 s; 50 iterations of 40 samples.
  const PlanCandidate plan = MakePlan(SmallFeng(4))->chosen;
  EXPECT_EQ(plan.aggregation.layers, (Layers{1, 4}));
  EXPECT_EQ(plan.aggregation.placement, Placement::kWorkers);
  EXPECT_EQ(plan.iterations, 50);
  EXPECT_DOUBLE_EQ(plan.predicted[Term::kCompute], 0.1);
  EXPECT_DOUBLE_EQ(plan.predicted[Term::kCommunication], 4 * 0.13 + 3 * 0.11);
  EXPECT_NEAR(plan.predicted.seconds, 50 * 0.95, 1e-9);
  EXPECT_NEAR(plan.predicted.cost, 4 * 2e-5 * 47.5, 1e-12);
}

TEST(FengModel, LayersPayFromSixteenWorkersOn) {
  const PlanCandidate plan = MakePlan(SmallFeng(16))->chosen;
  EXPECT_EQ(plan.aggregation.layers, (Layers{1, 4, 16}));
  EXPECT_DOUBLE_EQ(plan.predicted[Term::kCommunication], 8 * 0.13 + 4 * 0.11);
  PlannerInput given = SmallFeng(16);
  given.aggregation.layers = {1, 16};
  EXPECT_DOUBLE_EQ(MakePlan(given)->chosen.predicted[Term::kCommunication], 16 * 0.13 + 3 * 0.11);
}

TEST(FengModel, ServersOfTheirOwnArePaidAndCounted) {
  PlannerInput input = SmallFeng(4);
  input.aggregation.placement = Placement::kDedicated;
  const PlanCandidate plan = MakePlan(input)->chosen;
  EXPECT_EQ(plan.server_memory_mib, 1024);
  EXPECT_NEAR(plan.predicted.cost, 5 * 2e-5 * 47.5, 1e-12);
  input.platform.max_functions = 4;
  EXPECT_EQ(MakePlan(input)->certificate.kind, Infeasibility::kFunctions);
}

TEST(FengModel, SaysWhatItNeeds) {
  const auto mentions = [](auto change, const char* text) {
    PlannerInput input = SmallFeng(4);
    change(&input);
    const std::string said(MakePlan(input).status().message());
    EXPECT_NE(said.find(text), std::string::npos) << said;
  };
  mentions([](PlannerInput* in) { in->platform.function_store_intercept = 0; },
           "platform.function.storeBytesPerSecond (needed by model feng)");
  mentions([](PlannerInput* in) { in->aggregation.shards = 2; }, "aggregation.shards");
  mentions([](PlannerInput* in) { in->aggregation.transport = TransportKind::kDirect; },
           "ObjectStore");
}

struct FengResult {
  double seconds = 0;
  double cost = 0;
};

// Written again from docs/theory.md, section 5.
FengResult FengEquations(const PlannerInput& input, int n, int m, const Layers& layers) {
  const Platform& platform = input.platform;
  const double bandwidth = std::min(
      platform.function_store_slope * m + platform.function_store_intercept,
      platform.store_bytes_per_second.Or(0) > 0 ? platform.store_bytes_per_second.Or(0) : 1e300);
  const double write = platform.store_request_seconds + input.profile.model_bytes / bandwidth;
  double merge = write;
  if (input.profile.merge_bytes_per_second > 0) {
    merge += input.profile.model_bytes / input.profile.merge_bytes_per_second;
  }
  const double batch =
      std::min(n * input.limits.local_batch_size, *input.limits.max_global_batch_size);
  double exchange = 2 * write;
  int servers = 0;
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    exchange += std::ceil(layers[i + 1] / static_cast<double>(layers[i])) * merge + write;
    servers += layers[i];
  }
  if (input.aggregation.placement != Placement::kDedicated) servers = 0;
  const double rate = input.profile.training_rate.slope * m + input.profile.training_rate.intercept;
  const double iterations =
      std::ceil(static_cast<double>(input.profile.training_samples) * input.limits.epochs / batch);
  FengResult tried;
  tried.seconds = iterations * (batch / (n * rate) + exchange);
  tried.cost = (n + servers) * m / 1024.0 * platform.prices.gib_second * tried.seconds;
  if (n + servers > platform.max_functions || rate <= 0 || bandwidth <= 0) tried.cost = 1e300;
  return tried;
}

template <typename Visit>
void ForEachTree(int n, Visit visit) {
  visit(Layers{1, n});
  for (int lower = 1; lower <= n; ++lower) {
    visit(Layers{1, lower, n});
    for (int upper = 1; upper <= lower; ++upper) visit(Layers{1, upper, lower, n});
  }
}

TEST(FengModel, TheSearchEqualsTryingEveryTree) {
  int feasible = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Chooser choose(seed);
    PlannerInput input =
        Workload(0, choose.Whole(100, 5000), choose.Scale(1e5, 1e8), choose.Whole(1, 64),
                 choose.Whole(64, 1024),
                 {.slope = choose.Scale(0.01, 1), .intercept = choose.Real(-100, 20)}, 128,
                 choose.Whole(1, 4));
    input.options.model = PredictionModel::kFeng;
    input.options.explain = choose.Chance(0.5);
    Platform& platform = input.platform;
    platform.memory = {.min_mib = 128, .max_mib = 128 * choose.Whole(1, 6), .step_mib = 128};
    platform.max_functions = choose.Whole(1, 26);
    platform.store_bytes_per_second = choose.Chance(0.5) ? 0 : choose.Scale(1e7, 1e9);
    platform.function_store_intercept = choose.Real(-1e7, 1e8);
    platform.function_store_slope = choose.Scale(1e3, 1e5);
    LetSomeSizeRun(&platform);
    platform.store_request_seconds = choose.Chance(0.2) ? 0 : choose.Scale(1e-4, 0.1);
    input.profile.merge_bytes_per_second = choose.Chance(0.3) ? 0 : choose.Scale(1e8, 1e10);
    if (choose.Chance(0.5)) input.aggregation.placement = Placement::kDedicated;
    double fastest = 1e300;
    double cheapest = 1e300;
    const auto visit_all = [&](auto visit) {
      for (int m = 128; m <= platform.memory.max_mib; m += 128) {
        for (int n = 1; n <= platform.max_functions; ++n) {
          ForEachTree(n, [&](const Layers& layers) {
            const FengResult tried = FengEquations(input, n, m, layers);
            if (tried.cost < 1e300) visit(tried);
          });
        }
      }
    };
    visit_all([&](const FengResult& tried) { fastest = std::min(fastest, tried.seconds); });
    if (fastest >= 1e300) continue;
    const double deadline = fastest * choose.Scale(0.8, 20);
    visit_all([&](const FengResult& tried) {
      if (tried.seconds <= deadline) cheapest = std::min(cheapest, tried.cost);
    });
    input.objective.deadline_seconds = deadline;
    const PlanningOutcome outcome = MakePlan(input).value();
    ASSERT_EQ(outcome.feasible, cheapest < 1e300) << "seed " << seed;
    if (!outcome.feasible) {
      ASSERT_NEAR(outcome.certificate.fastest_seconds, fastest, 1e-9 * fastest + 2e-6);
      continue;
    }
    ++feasible;
    ASSERT_NEAR(outcome.chosen.predicted.cost, cheapest, 1e-9 + 1e-12 * cheapest)
        << "seed " << seed;
    ASSERT_LE(outcome.chosen.predicted.seconds, deadline) << "seed " << seed;
  }
  EXPECT_GT(feasible, 100);
}

}  // namespace
}  // namespace lambdadnn
