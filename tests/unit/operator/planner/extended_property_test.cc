// SPDX-License-Identifier: Apache-2.0
// The search over (n, m, K, layers, spread, placement) against a brute force over every tree, shard
// count and spread of the stated space, on random instances.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>

#include "common/plan/geometry.h"
#include "operator/planner/aggregation_space.h"
#include "operator/planner/candidate.h"
#include "operator/planner/extended_model.h"
#include "operator/planner/wording.h"
#include "tests/unit/operator/planner/random_input.h"

namespace lambdadnn {
namespace {

constexpr int kExtendedInstances = 120;

struct Evaluated {
  Prediction predicted;
  Point point;  // its seconds: as expected
  AggregationPlan plan;

  Point By(const Order& order) const {
    Point compared = point;
    compared.seconds = order.SecondsOf(predicted);
    return compared;
  }
};

// With the confidence that deadlines have unless they say another one.
double FastestWithConfidence(const std::vector<Evaluated>& all) {
  Objective objective;
  objective.deadline_seconds = 1;
  const Order order(objective);
  double fastest = std::numeric_limits<double>::infinity();
  for (const Evaluated& candidate : all) {
    fastest = std::min(fastest, candidate.By(order).seconds);
  }
  return fastest;
}

// Every tree with shrinking widths of at most kMostServerLayers layers of servers.
void AllTrees(std::vector<int> layers, std::vector<std::vector<int>>* trees) {
  std::vector<int> tree = layers;
  tree.insert(tree.begin(), 1);
  trees->push_back(tree);
  if (static_cast<int>(layers.size()) == kMostServerLayers) return;
  for (int width = 2; width < layers.front(); ++width) {
    std::vector<int> more = layers;
    more.insert(more.begin(), width);
    AllTrees(more, trees);
  }
}

// Looks once for functions of the same sizes and numbers.
class Reservation {
 public:
  explicit Reservation(const ExtendedModel& model) : model_(model) {}
  bool Fits(const WorkerTerms& workers, int memory_mib, const AggregationOption& option) {
    const auto [found, fresh] = known_.try_emplace(
        {workers.functions, memory_mib, option.servers, option.server_memory_mib}, false);
    if (fresh) found->second = model_.FitsNodes(workers, memory_mib, option);
    return found->second;
  }

 private:
  const ExtendedModel& model_;
  std::map<std::array<int, 4>, bool> known_;
};

std::vector<TransportKind> AllTransports(const PlannerInput& input) {
  if (input.aggregation.transport) return {*input.aggregation.transport};
  if (!input.profile.direct.known()) return {TransportKind::kObjectStore};
  return {TransportKind::kObjectStore, TransportKind::kDirect};
}

// Every tree where servers are dedicated; where workers serve, the trees that are listed.
std::vector<AggregationPlan> AllPlans(const PlannerInput& input, int functions) {
  const std::optional<Placement> placement = input.aggregation.placement;
  std::vector<AggregationPlan> plans;
  if (placement != Placement::kDedicated) {
    PlannerInput on_workers = input;
    on_workers.aggregation.placement = Placement::kWorkers;
    plans = AggregationOptions(on_workers, functions);
  }
  if (placement == Placement::kWorkers) return plans;
  const int64_t blocks = BlockCount(ParametersOf(input), input.platform.block_elements);
  std::vector<std::vector<int>> trees;
  AllTrees({functions}, &trees);
  for (const std::vector<int>& tree : trees) {
    for (int shards = 1; shards <= 64 && shards <= blocks; shards *= 2) {
      for (int spread = 1; spread <= 8; ++spread) {
        if (shards % spread != 0) continue;
        for (const TransportKind transport : AllTransports(input)) {
          AggregationPlan& plan = plans.emplace_back();
          plan.transport = transport;
          plan.layers = tree;
          plan.shards = shards;
          plan.spread = spread;
        }
      }
    }
  }
  return plans;
}

std::vector<Evaluated> AllCandidates(const PlannerInput& input) {
  const ExtendedModel model(input);
  Reservation capacity(model);
  std::vector<Evaluated> all;
  int largest =
      std::min({input.platform.max_functions, input.limits.global_batch_size.value_or(1 << 30)});
  if (input.limits.gpu > 0 && input.platform.total_gpus.known()) {
    largest = std::min(largest, static_cast<int>(input.platform.total_gpus));
  }
  for (int n = 1; n <= largest; ++n) {
    const WorkerTerms workers = model.Workers(n);
    for (const AggregationPlan& plan : AllPlans(input, n)) {
      const AggregationOption option = model.Option(plan);
      for (int m = input.platform.memory.min_mib; m <= input.platform.memory.max_mib;
           m += input.platform.memory.step_mib) {
        if (model.Check(workers, m, option)) continue;
        const auto prediction = model.Predict(workers, m, option);
        if (!prediction || !capacity.Fits(workers, m, option)) continue;
        all.push_back({*prediction, {prediction->seconds, prediction->cost, n, m, 0}, plan});
      }
    }
  }
  return all;
}

// The best by `order`, ties by n, m and the simpler aggregation.
std::optional<Evaluated> BestOf(const std::vector<Evaluated>& all, const Order& order) {
  const Evaluated* best = nullptr;
  Point least;
  for (const Evaluated& candidate : all) {
    const Point point = candidate.By(order);
    if (!order.Allows(point)) continue;
    if (best == nullptr || order.Better(point, least) ||
        (!order.Better(least, point) && SimplerAggregation(candidate.plan, best->plan))) {
      best = &candidate;
      least = point;
    }
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

void ExpectSame(const PlannerInput& input, const std::optional<Evaluated>& expected,
                uint64_t seed) {
  for (const bool explain : {false, true}) {
    PlannerInput asked = input;
    asked.options.explain = explain;
    const PlanningOutcome outcome = MakePlan(asked).value();
    ASSERT_EQ(outcome.feasible, expected.has_value()) << "seed " << seed;
    if (!expected) return;
    ASSERT_EQ(outcome.plan.predicted.cost, expected->point.cost) << "seed " << seed;
    ASSERT_EQ(outcome.plan.predicted.seconds, expected->point.seconds) << "seed " << seed;
    ASSERT_EQ(outcome.plan.functions, expected->point.functions) << "seed " << seed;
    ASSERT_EQ(outcome.plan.memory_mib, expected->point.memory_mib) << "seed " << seed;
    ASSERT_EQ(outcome.plan.aggregation, expected->plan) << "seed " << seed;
    ASSERT_TRUE(outcome.plan.Validate().ok());
  }
}

bool Streams(const PlannerInput& input, const Evaluated& candidate) {
  const ExtendedModel model(input);
  return SampleMemoryMib(model.Workers(candidate.point.functions).memory,
                         candidate.point.memory_mib, model.Option(candidate.plan).worker_mib) > 0;
}

TEST(ExtendedSearch, EqualsBruteForceForEveryObjective) {
  int feasible = 0;
  int layered = 0;
  int sharded = 0;
  int crowded = 0;   // the machines refuse some
  int both = 0;      // a plan is within deadline and budget
  int streamed = 0;  // its samples do not fit
  for (uint64_t seed = 1; seed <= kExtendedInstances; ++seed) {
    PlannerInput input = RandomExtendedInput(seed);
    const std::vector<Evaluated> all = AllCandidates(input);
    if (all.empty()) {
      const PlanningOutcome outcome = MakePlan(input).value();
      ASSERT_FALSE(outcome.feasible) << "seed " << seed;
      ASSERT_FALSE(outcome.certificate.fastest.has_value());
      ASSERT_FALSE(ReasonOf(outcome.certificate).empty());
      continue;
    }
    const double fastest = FastestWithConfidence(all);
    double cheapest = std::numeric_limits<double>::infinity();
    for (const Evaluated& candidate : all) cheapest = std::min(cheapest, candidate.point.cost);
    Chooser choose(seed * 7919);
    input.objective = Objective{};
    input.objective.deadline_seconds = fastest * choose.Scale(0.9, 20);
    if (choose.Chance(0.5)) {
      input.objective.confidence = choose.Real(kLeastConfidence, kMostConfidence);
    }
    const auto best = BestOf(all, Order(input.objective));
    ASSERT_NO_FATAL_FAILURE(ExpectSame(input, best, seed));
    feasible += best ? 1 : 0;
    streamed += best && Streams(input, *best) ? 1 : 0;
    layered += best && best->plan.layers.size() > 2 ? 1 : 0;

    if (input.options.explain && !input.platform.nodes.empty()) {
      const PlanningOutcome outcome = MakePlan(input).value();
      crowded += outcome.search.refused[static_cast<size_t>(Limit::kNodes)] > 0 ? 1 : 0;
    }

    input.objective = Objective{};
    input.objective.budget = cheapest * choose.Scale(0.9, 20);
    const auto quickest = BestOf(all, Order(input.objective));
    ASSERT_NO_FATAL_FAILURE(ExpectSame(input, quickest, seed));
    layered += quickest && quickest->plan.layers.size() > 2 ? 1 : 0;
    sharded += quickest && quickest->plan.shards > 1 ? 1 : 0;

    input.objective.deadline_seconds = fastest * choose.Scale(0.9, 20);
    const auto within_both = BestOf(all, Order(input.objective));
    ASSERT_NO_FATAL_FAILURE(ExpectSame(input, within_both, seed));
    both += within_both ? 1 : 0;

    input.objective.performance_cost_ratio = true;
    if (choose.Chance(0.5)) input.objective.cost_weight = choose.Real(0, 1);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(input, BestOf(all, Order(input.objective)), seed));

    input.objective = Objective{};
    input.objective.performance_cost_ratio = true;
    input.objective.cost_weight = choose.Chance(0.5) ? choose.Whole(0, 2) / 2.0 : choose.Real(0, 1);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(input, BestOf(all, Order(input.objective)), seed));
  }
  EXPECT_GT(both, kExtendedInstances / 3);
  // The instances are not all of one trivial kind.
  EXPECT_GT(feasible, kExtendedInstances / 3);
  EXPECT_GT(layered, kExtendedInstances / 80);
  EXPECT_GT(sharded, kExtendedInstances / 20);
  EXPECT_GT(crowded, kExtendedInstances / 20);
  EXPECT_GT(streamed, 2);
}

// Of all functions of a candidate while it runs, in place of its cost.
double BusySeconds(const ExtendedModel& model, const Platform& platform,
                   const Evaluated& candidate) {
  const AggregationOption option = model.Option(candidate.plan);
  const double milli_cpu =
      candidate.point.functions * MilliCpuOf(platform, candidate.point.memory_mib) +
      option.servers * MilliCpuOf(platform, option.server_memory_mib);
  const double mib =
      candidate.point.functions * (candidate.point.memory_mib + platform.sidecar_memory_mib) +
      option.servers * (option.server_memory_mib + platform.sidecar_memory_mib);
  return candidate.point.seconds * (platform.milli_cpu_per_gib > 0 ? milli_cpu / 1000 : mib / 1024);
}

TEST(ExtendedSearch, WithoutPricesTheLeastUseEqualsBruteForce) {
  // As fine as the search compares uses.
  constexpr double kQuantum = 1e-4;
  int by_cores = 0;
  int more_functions = 0;  // than the fewest
  for (uint64_t seed = 1; seed <= kExtendedInstances; ++seed) {
    PlannerInput input = RandomExtendedInput(seed);
    input.platform.prices = {};
    const std::vector<Evaluated> all = AllCandidates(input);
    if (all.empty()) continue;
    const ExtendedModel model(input);
    const double deadline = FastestWithConfidence(all) * Chooser(seed * 104729).Scale(1, 20);
    double fastest = std::numeric_limits<double>::infinity();
    double least = std::numeric_limits<double>::infinity();
    int fewest = std::numeric_limits<int>::max();
    input.objective = Objective{};
    input.objective.deadline_seconds = deadline;
    const Order order(input.objective);
    for (const Evaluated& candidate : all) {
      fastest = std::min(fastest, candidate.point.seconds);
      if (!order.Allows(candidate.By(order))) continue;
      least = std::min(least, BusySeconds(model, input.platform, candidate));
      fewest = std::min(fewest, candidate.point.functions);
    }
    for (const bool explain : {false, true}) {
      input.options.explain = explain;
      const PlanningOutcome outcome = MakePlan(input).value();
      ASSERT_TRUE(outcome.feasible) << "seed " << seed;
      const bool cores = input.platform.milli_cpu_per_gib > 0;
      ASSERT_EQ(outcome.measure, cores ? CostMeasure::kCoreSeconds : CostMeasure::kGibSeconds);
      ASSERT_LE(outcome.plan.predicted.seconds, deadline);
      ASSERT_NEAR(outcome.chosen.use, least, kQuantum + 1e-9 * least) << "seed " << seed;
      ASSERT_EQ(outcome.plan.predicted.cost, 0);
      ASSERT_EQ(outcome.chosen.predicted.cost, 0);
      by_cores += cores ? 1 : 0;
      more_functions += outcome.plan.functions > fewest ? 1 : 0;
      if (!explain) continue;
      // The front's cheapest end needs no less time, and its fastest no less use.
      for (size_t i = 1; i < outcome.pareto_front.size(); ++i) {
        ASSERT_LT(outcome.pareto_front[i].candidate.use, outcome.pareto_front[i - 1].candidate.use);
        ASSERT_EQ(outcome.pareto_front[i].candidate.predicted.cost, 0);
      }
    }
    // Any budget allows everything: the fastest plan, and of equally fast ones the least use.
    input.objective = Objective{};
    input.objective.budget = 1e-9;
    const PlanningOutcome quickest = MakePlan(input).value();
    ASSERT_TRUE(quickest.feasible) << "seed " << seed;
    ASSERT_NEAR(quickest.plan.predicted.seconds, fastest, kTimeQuantum);
  }
  EXPECT_GT(by_cores, kExtendedInstances / 3);
  EXPECT_GT(more_functions, 0);
}

TEST(ExtendedSearch, ANodeHourIsSharedOutAsBruteForceDoes) {
  for (uint64_t seed = 1; seed <= kExtendedInstances / 2; ++seed) {
    PlannerInput input = RandomExtendedInput(seed);
    Chooser choose(seed * 15485863);
    input.platform.prices = {.node_hour = {.price = choose.Scale(0.01, 10),
                                           .milli_cpu = choose.Scale(1000, 1e5),
                                           .memory_mib = choose.Scale(1000, 1e5)}};
    const std::vector<Evaluated> all = AllCandidates(input);
    if (all.empty()) continue;
    input.objective.deadline_seconds = FastestWithConfidence(all) * choose.Scale(1, 20);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(input, BestOf(all, Order(input.objective)), seed));
  }
}

// Where the deadline cannot be met the plan is the fastest within the budget, and says so.
TEST(ExtendedSearch, BestEffortIsTheFastestWithinTheBudget) {
  int late = 0;
  int both = 0;
  for (uint64_t seed = 1; seed <= kExtendedInstances / 2; ++seed) {
    PlannerInput input = RandomExtendedInput(seed);
    const std::vector<Evaluated> all = AllCandidates(input);
    if (all.empty()) continue;
    const double fastest = FastestWithConfidence(all);
    double cheapest = std::numeric_limits<double>::infinity();
    for (const Evaluated& candidate : all) cheapest = std::min(cheapest, candidate.point.cost);
    Chooser choose(seed * 32452843);
    Objective objective;
    objective.deadline_seconds = fastest * choose.Scale(0.5, 3);
    if (choose.Chance(0.7)) objective.budget = cheapest * choose.Scale(0.9, 5);
    const auto in_both = BestOf(all, Order(objective));
    Objective without_deadline;
    without_deadline.budget = objective.budget.value_or(1e9);
    const auto quickest = BestOf(all, Order(without_deadline));
    input.objective = objective;
    input.options.explain = choose.Chance(0.5);
    const PlanningOutcome refused = MakePlan(input).value();
    ASSERT_EQ(refused.feasible, in_both.has_value()) << "seed " << seed;
    input.objective.best_effort = true;
    const PlanningOutcome outcome = MakePlan(input).value();
    ASSERT_EQ(outcome.feasible, quickest.has_value()) << "seed " << seed;
    ASSERT_EQ(outcome.best_effort, quickest.has_value() && !in_both.has_value());
    if (in_both) {
      ASSERT_EQ(outcome.plan, refused.plan);
    }
    if (!outcome.feasible) {
      ASSERT_EQ(outcome.certificate.kind, Infeasibility::kBudget);
    }
    if (!outcome.best_effort) continue;
    ++late;
    both += outcome.certificate.kind == Infeasibility::kBoth ? 1 : 0;
    ASSERT_EQ(outcome.plan.predicted.seconds, quickest->point.seconds) << "seed " << seed;
    ASSERT_LE(outcome.plan.predicted.cost, objective.budget.value_or(1e9));
    ASSERT_EQ(ReasonOf(outcome.certificate), ReasonOf(refused.certificate));
    // Each of the two ways out that the certificate names has a plan.
    input.objective = objective;
    input.objective.deadline_seconds = outcome.certificate.nearest_deadline_seconds;
    ASSERT_TRUE(MakePlan(input)->feasible) << "seed " << seed;
    if (outcome.certificate.kind != Infeasibility::kBoth) continue;
    input.objective = objective;
    input.objective.budget = outcome.certificate.nearest_budget;
    ASSERT_TRUE(MakePlan(input)->feasible) << "seed " << seed;
  }
  EXPECT_GT(late, 10);
  EXPECT_GT(both, 0);
}

TEST(ExtendedSearch, TheFrontAndTheRunnersUpEqualBruteForce) {
  for (uint64_t seed = 1; seed <= kExtendedInstances / 4; ++seed) {
    PlannerInput input = RandomExtendedInput(seed);
    const std::vector<Evaluated> all = AllCandidates(input);
    if (all.empty()) continue;
    input.objective.deadline_seconds = 1e9;
    const PlanningOutcome outcome = MakePlan(input).value();
    ASSERT_TRUE(outcome.feasible);
    // Of every n, the best; the chosen one and the runners-up are the first four of them.
    const Order order(input.objective);
    std::vector<Point> best_of_each;
    for (int n = 1; n <= input.platform.max_functions; ++n) {
      std::vector<Evaluated> those;
      for (const Evaluated& candidate : all) {
        if (candidate.point.functions == n) those.push_back(candidate);
      }
      if (const auto best = BestOf(those, order)) best_of_each.push_back(best->point);
    }
    // With a deadline that all meet, cost alone decides.
    std::sort(best_of_each.begin(), best_of_each.end(),
              [&](const Point& a, const Point& b) { return order.Better(a, b); });
    ASSERT_EQ(outcome.runners_up.size(), std::min<size_t>(3, best_of_each.size() - 1));
    for (size_t i = 0; i < outcome.runners_up.size(); ++i) {
      ASSERT_EQ(outcome.runners_up[i].functions, best_of_each[i + 1].functions) << "seed " << seed;
      ASSERT_EQ(outcome.runners_up[i].memory_mib, best_of_each[i + 1].memory_mib);
      ASSERT_EQ(outcome.runners_up[i].predicted.cost, best_of_each[i + 1].cost);
    }
    for (const Evaluated& candidate : all) {
      const bool covered = std::any_of(
          outcome.pareto_front.begin(), outcome.pareto_front.end(), [&](const ParetoPoint& point) {
            return TimeRank(point.seconds) <= TimeRank(candidate.By(order).seconds) &&
                   CostRank(point.candidate.predicted.cost) <= CostRank(candidate.point.cost);
          });
      ASSERT_TRUE(covered) << "seed " << seed;
    }
  }
}

TEST(ExtendedSearch, CostNeverGrowsWithTheDeadline) {
  for (uint64_t seed = 1; seed <= kExtendedInstances; ++seed) {
    PlannerInput input = RandomExtendedInput(seed);
    input.objective.deadline_seconds = 1e-3;
    const PlanningOutcome impossible = MakePlan(input).value();
    if (!impossible.certificate.fastest) continue;
    double previous = std::numeric_limits<double>::infinity();
    input.options.explain = false;
    for (const double factor : {1.0, 1.05, 1.3, 2.0, 4.0, 10.0}) {
      input.objective.deadline_seconds = impossible.certificate.nearest_deadline_seconds * factor;
      const PlanningOutcome outcome = MakePlan(input).value();
      ASSERT_TRUE(outcome.feasible) << "seed " << seed;
      ASSERT_LE(CostRank(outcome.plan.predicted.cost), previous) << "seed " << seed;
      previous = CostRank(outcome.plan.predicted.cost);
    }
  }
}

// What the user fixes is what the plan has.
TEST(ExtendedSearch, GivenAggregationIsKept) {
  PlannerInput input = RandomExtendedInput(3);
  input.profile.model_bytes = 4e6;
  input.profile.worker_base_memory_mib = 0;
  input.profile.worker_bytes_per_sample = 0;
  input.profile.training_rate = {.slope = 0.1, .intercept = 1};
  input.platform.total_milli_cpu = input.platform.total_memory_mib = 0;
  input.platform.max_functions = 40;
  input.platform.function_store_slope = input.platform.function_store_intercept = 0;
  input.platform.function_timeout_seconds = 0;
  input.limits.global_batch_size = 64;
  input.limits.max_global_batch_size.reset();
  input.objective.deadline_seconds = 1e9;
  input.aggregation.shards = 6;
  input.aggregation.spread = 3;
  input.aggregation.layers = {1, 2, 8};
  input.aggregation.server_memory_mib = 333;
  const PlanningOutcome outcome = MakePlan(input).value();
  ASSERT_TRUE(outcome.feasible) << ReasonOf(outcome.certificate);
  EXPECT_EQ(outcome.plan.functions, 8);
  EXPECT_EQ(outcome.plan.aggregation.shards, 6);
  EXPECT_EQ(outcome.plan.aggregation.spread, 3);
  EXPECT_EQ(outcome.plan.aggregation.layers, (std::vector<int>{1, 2, 8}));
  EXPECT_EQ(outcome.plan.server_memory_mib, 333);
}

}  // namespace
}  // namespace lambdadnn
