// SPDX-License-Identifier: Apache-2.0
// The search over (n, m) under λDNN's model against an independent brute force, on random
// instances.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "operator/planner/candidate.h"
#include "operator/planner/planner.h"
#include "operator/planner/wording.h"
#include "tests/unit/operator/planner/chooser.h"
#include "tests/unit/operator/planner/planner_fixtures.h"

namespace lambdadnn {
namespace {

constexpr int kInstances = 12000;

PlannerInput RandomInput(uint64_t seed) {
  Chooser choose(seed);
  PlannerInput input;
  input.options.model = PredictionModel::kLambdaDnn;
  input.profile.training_samples = choose.Whole(100, 100000);
  input.profile.training_bytes = choose.Chance(0.1) ? 0 : choose.Scale(1e6, 1e10);
  input.profile.model_bytes = choose.Scale(1e4, 1e9);
  input.profile.training_rate.slope = choose.Scale(1e-3, 1);
  input.profile.training_rate.intercept = choose.Real(-50, 50);
  if (choose.Chance(0.2)) input.profile.training_rate.max_samples_per_second = choose.Real(1, 200);
  if (choose.Chance(0.2)) {
    input.profile.training_rate.table = {
        {256, choose.Real(0, 20)}, {1024, choose.Real(20, 90)}, {2048, choose.Real(80, 100)}};
  }
  input.limits.epochs = choose.Chance(0.3) ? choose.Real(0.5, 20) : choose.Whole(1, 20);
  if (choose.Chance(0.25)) {
    input.limits.global_batch_size = choose.Whole(8, 100);
  } else {
    input.limits.local_batch_size = choose.Whole(1, 128);
    input.limits.max_global_batch_size = choose.Whole(128, 4096);
  }
  input.limits.min_functions = choose.Chance(0.2) ? choose.Whole(1, 6) : 1;
  Platform& platform = input.platform;
  platform = LambdaPlatform();
  platform.memory.min_mib = 64 * choose.Whole(1, 10);
  platform.memory.max_mib = platform.memory.min_mib + 64 * choose.Whole(0, 30);
  platform.max_functions = choose.Whole(8, 80);
  platform.function_network_bytes_per_second = choose.Scale(1e7, 1e9);
  platform.parameter_server_network_bytes_per_second =
      choose.Chance(0.1) ? 0 : choose.Scale(1e7, 1e10);
  platform.parameter_server_price_per_second = choose.Chance(0.4) ? 0 : choose.Scale(1e-6, 1e-3);
  platform.store_bytes_per_second = choose.Chance(0.1) ? 0 : choose.Scale(1e6, 1e9);
  if (choose.Chance(0.5)) {
    platform.function_store_slope = choose.Real(0, 1e5);
    platform.function_store_intercept = choose.Real(-1e7, 1e8);
    LetSomeSizeRun(&platform);
  }
  return input;
}

// T and C of Eqs. (1) to (10), written again from the paper in plain arithmetic.
struct Times {
  double seconds;
  double cost;
};
std::optional<Times> Equations(const PlannerInput& input, int n, int m) {
  const Platform& platform = input.platform;
  const double infinity = std::numeric_limits<double>::infinity();
  const auto limit = [&](double value) { return value > 0 ? value : infinity; };
  const double rate = input.profile.training_rate.At(m);
  double store = limit(platform.store_bytes_per_second);
  if (platform.function_store_slope != 0 || platform.function_store_intercept != 0) {
    store = std::min(platform.function_store_slope * m + platform.function_store_intercept, store);
  }
  if (rate <= 0 || store <= 0) return std::nullopt;
  const double network = std::min(platform.function_network_bytes_per_second.Or(0),
                                  limit(platform.parameter_server_network_bytes_per_second) / n);
  double local = 0;
  if (input.limits.global_batch_size) {
    local = *input.limits.global_batch_size / static_cast<double>(n);
  } else if (n * input.limits.local_batch_size <= *input.limits.max_global_batch_size) {
    local = input.limits.local_batch_size;
  } else {
    local = *input.limits.max_global_batch_size / static_cast<double>(n);
  }
  const double k =
      static_cast<double>(input.profile.training_samples) * input.limits.epochs / (n * local);
  const double t = input.profile.training_bytes / (n * store) +
                   k * (local / rate + 2 * input.profile.model_bytes / network);
  const double price = platform.prices.gib_second / 1024;
  return Times{t, (n * m * price + platform.parameter_server_price_per_second) * t};
}

struct Best {
  double rank;
  int functions;
  int memory_mib;
  friend auto operator<=>(const Best&, const Best&) = default;
};

int LargestN(const PlannerInput& input) {
  return std::min(
      input.platform.max_functions,
      input.limits.global_batch_size.value_or(input.limits.max_global_batch_size.value_or(0)));
}

template <typename Visit>
void ForEachCandidate(const PlannerInput& input, Visit visit) {
  for (int m = input.platform.memory.min_mib; m <= input.platform.memory.max_mib; m += 64) {
    for (int n = input.limits.min_functions; n <= LargestN(input); ++n) {
      if (const auto times = Equations(input, n, m)) visit(n, m, times->seconds, times->cost);
    }
  }
}

std::optional<Best> BruteForce(const PlannerInput& input, double deadline) {
  std::optional<Best> best;
  ForEachCandidate(input, [&](int n, int m, double seconds, double cost) {
    if (seconds > deadline) return;
    const Best candidate{std::nearbyint(cost / 1e-9), n, m};
    if (!best || candidate < *best) best = candidate;
  });
  return best;
}

double FastestSeconds(const PlannerInput& input) {
  double fastest = std::numeric_limits<double>::infinity();
  ForEachCandidate(input,
                   [&](int, int, double seconds, double) { fastest = std::min(fastest, seconds); });
  return fastest;
}

// From infeasible over barely feasible to loose.
double RandomDeadline(uint64_t seed, double fastest) {
  Chooser choose(seed ^ 0x5eed);
  return fastest * (choose.Chance(0.1) ? choose.Real(0.3, 1) : choose.Scale(1, 50));
}

TEST(LambdaDnnSearch, EqualsBruteForce) {
  int feasible = 0;
  for (uint64_t seed = 1; seed <= kInstances; ++seed) {
    PlannerInput input = RandomInput(seed);
    const double fastest = FastestSeconds(input);
    if (!std::isfinite(fastest)) continue;
    input.objective.deadline_seconds = RandomDeadline(seed, fastest);
    input.options.explain = false;
    const auto expected = BruteForce(input, *input.objective.deadline_seconds);
    const PlanningOutcome outcome = MakePlan(input).value();
    ASSERT_EQ(outcome.feasible, expected.has_value()) << "seed " << seed;
    if (!expected) continue;
    ++feasible;
    // The two sums differ in their last bits, so a cost at the edge of a quantum may round apart.
    ASSERT_NEAR(CostRank(outcome.chosen.predicted.cost), expected->rank, 1) << "seed " << seed;
    if (CostRank(outcome.chosen.predicted.cost) != expected->rank) continue;
    ASSERT_EQ(outcome.chosen.functions, expected->functions) << "seed " << seed;
    ASSERT_EQ(outcome.chosen.memory_mib, expected->memory_mib) << "seed " << seed;
  }
  EXPECT_GT(feasible, kInstances / 2);
}

// With and without all that explains a plan, every bit must agree.
TEST(LambdaDnnSearch, ExplainingChangesNoBit) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    PlannerInput input = RandomInput(seed);
    const double fastest = FastestSeconds(input);
    if (!std::isfinite(fastest)) continue;
    input.objective.deadline_seconds = RandomDeadline(seed, fastest);
    input.options.explain = true;
    const PlanningOutcome explained = MakePlan(input).value();
    input.options.explain = false;
    const PlanningOutcome plain = MakePlan(input).value();
    ASSERT_EQ(explained.feasible, plain.feasible);
    ASSERT_EQ(explained.plan, plain.plan) << "seed " << seed;
    ASSERT_LE(plain.search.evaluated, explained.search.evaluated) << "seed " << seed;
  }
}

TEST(LambdaDnnSearch, NeverDearerThanAlgorithm1) {
  int both = 0;
  int cheaper = 0;
  for (uint64_t seed = 1; seed <= kInstances; ++seed) {
    PlannerInput input = RandomInput(seed);
    const double fastest = FastestSeconds(input);
    if (!std::isfinite(fastest)) continue;
    input.objective.deadline_seconds = RandomDeadline(seed, fastest);
    input.options.explain = false;
    const PlanningOutcome exact = MakePlan(input).value();
    for (const SearchMethod reading : {SearchMethod::kAlgorithm1, SearchMethod::kAlgorithm1First}) {
      input.options.search = reading;
      const PlanningOutcome published = MakePlan(input).value();
      if (!published.feasible) continue;
      ASSERT_TRUE(exact.feasible) << "seed " << seed;
      ASSERT_LE(published.plan.predicted.seconds, *input.objective.deadline_seconds);
      const double exact_rank = CostRank(exact.plan.predicted.cost);
      const double published_rank = CostRank(published.plan.predicted.cost);
      ASSERT_LE(exact_rank, published_rank) << "seed " << seed;
      ++both;
      cheaper += exact_rank < published_rank ? 1 : 0;
    }
  }
  EXPECT_GT(both, kInstances / 4);
  EXPECT_GT(cheaper, 0);
}

TEST(LambdaDnnSearch, CostNeverGrowsWithTheDeadline) {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    PlannerInput input = RandomInput(seed);
    const double fastest = FastestSeconds(input);
    if (!std::isfinite(fastest)) continue;
    input.options.explain = false;
    double previous = std::numeric_limits<double>::infinity();
    for (const double factor : {1.0, 1.01, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0}) {
      input.objective.deadline_seconds = fastest * factor * (1 + 1e-12);
      const PlanningOutcome outcome = MakePlan(input).value();
      ASSERT_TRUE(outcome.feasible) << "seed " << seed;
      ASSERT_LE(CostRank(outcome.plan.predicted.cost), previous) << "seed " << seed;
      previous = CostRank(outcome.plan.predicted.cost);
    }
  }
}

TEST(LambdaDnnSearch, TheCertificateNamesTheNearestDeadline) {
  int seen = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    PlannerInput input = RandomInput(seed);
    const double fastest = FastestSeconds(input);
    if (!std::isfinite(fastest)) continue;
    input.objective.deadline_seconds = fastest * 0.9;
    const PlanningOutcome outcome = MakePlan(input).value();
    ASSERT_FALSE(outcome.feasible);
    ASSERT_NEAR(outcome.certificate.fastest_seconds, fastest, 2e-6 + 1e-12 * fastest);
    ASSERT_FALSE(ReasonOf(outcome.certificate).empty());
    input.objective.deadline_seconds = outcome.certificate.nearest_deadline_seconds;
    ASSERT_TRUE(MakePlan(input)->feasible) << "seed " << seed;
    input.objective.deadline_seconds = fastest * 0.999 - 1e-5;
    if (*input.objective.deadline_seconds > 0) {
      ASSERT_FALSE(MakePlan(input)->feasible);
      ++seen;
    }
  }
  EXPECT_GT(seen, 1000);
}

TEST(LambdaDnnSearch, BudgetAndRatioEqualBruteForce) {
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    PlannerInput input = RandomInput(seed);
    double cheapest = std::numeric_limits<double>::infinity();
    double least_product = std::numeric_limits<double>::infinity();
    ForEachCandidate(input, [&](int, int, double seconds, double cost) {
      cheapest = std::min(cheapest, cost);
      least_product = std::min(least_product, cost * seconds);
    });
    if (!std::isfinite(cheapest)) continue;
    const double budget = cheapest * Chooser(seed).Scale(0.8, 10);
    double fastest = std::numeric_limits<double>::infinity();
    ForEachCandidate(input, [&](int, int, double seconds, double cost) {
      if (cost <= budget) fastest = std::min(fastest, seconds);
    });
    input.objective.budget = budget;
    const PlanningOutcome outcome = MakePlan(input).value();
    ASSERT_EQ(outcome.feasible, std::isfinite(fastest)) << "seed " << seed;
    if (outcome.feasible) {
      ASSERT_LE(outcome.plan.predicted.cost, budget);
      ASSERT_NEAR(outcome.plan.predicted.seconds, fastest, 2e-6 + 1e-12 * fastest);
    } else {
      ASSERT_NEAR(outcome.certificate.nearest_budget, cheapest, 2e-9);
      input.objective.budget = outcome.certificate.nearest_budget;
      ASSERT_TRUE(MakePlan(input)->feasible);
    }
    input.objective = Objective{};
    input.objective.performance_cost_ratio = true;
    input.objective.cost_weight = 0.5;
    const PlanningOutcome ratio = MakePlan(input).value();
    ASSERT_TRUE(ratio.feasible);
    ASSERT_NEAR(std::sqrt(ratio.plan.predicted.cost * ratio.plan.predicted.seconds),
                std::sqrt(least_product), 2e-9 + 1e-12 * std::sqrt(least_product));
  }
}

// The paper's function of m MiB costs m p a second, with the CPU that comes with it.
TEST(LambdaDnnSearch, AnyWayOfPricingFunctionsIsAPriceOfTheirMemory) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    PlannerInput input = RandomInput(seed);
    const double fastest = FastestSeconds(input);
    if (!std::isfinite(fastest)) continue;
    input.objective.deadline_seconds = RandomDeadline(seed, fastest);
    input.platform.milli_cpu_per_gib = 500;
    const PlanningOutcome by_memory = MakePlan(input).value();
    const double gib_second = input.platform.prices.gib_second;
    input.platform.prices = {.vcpu_second = 2 * gib_second};
    const PlanningOutcome by_cores = MakePlan(input).value();
    // Half of the node's cores and a quarter of its memory: cores are what counts.
    input.platform.prices = {
        .node_hour = {.price = 2 * gib_second * 3600, .milli_cpu = 1000, .memory_mib = 4096}};
    const PlanningOutcome by_node = MakePlan(input).value();
    ASSERT_EQ(by_memory.feasible, by_cores.feasible);
    ASSERT_EQ(by_memory.feasible, by_node.feasible);
    if (!by_memory.feasible) continue;
    const double cost = by_memory.plan.predicted.cost;
    ASSERT_NEAR(by_cores.plan.predicted.cost, cost, kCostQuantum + 1e-9 * cost);
    ASSERT_NEAR(by_node.plan.predicted.cost, cost, kCostQuantum + 1e-9 * cost);
  }
}

TEST(LambdaDnnSearch, TheFrontHasNoDominatedPointAndMissesNone) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    PlannerInput input = RandomInput(seed);
    const double fastest = FastestSeconds(input);
    if (!std::isfinite(fastest)) continue;
    input.objective.deadline_seconds = fastest * 3;
    const PlanningOutcome outcome = MakePlan(input).value();
    const auto& front = outcome.pareto_front;
    ASSERT_FALSE(front.empty());
    for (size_t i = 1; i < front.size(); ++i) {
      ASSERT_LT(front[i - 1].candidate.predicted.seconds, front[i].candidate.predicted.seconds);
      ASSERT_GT(front[i - 1].candidate.predicted.cost, front[i].candidate.predicted.cost);
    }
    ForEachCandidate(input, [&](int, int, double seconds, double cost) {
      const bool covered = std::any_of(front.begin(), front.end(), [&](const ParetoPoint& point) {
        return point.candidate.predicted.seconds <= seconds + 2e-6 + seconds * 1e-12 &&
               point.candidate.predicted.cost <= cost + 2e-9;
      });
      ASSERT_TRUE(covered) << "seed " << seed;
    });
  }
}

}  // namespace
}  // namespace lambdadnn
