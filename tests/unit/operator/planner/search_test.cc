// SPDX-License-Identifier: Apache-2.0
// The search over any model: what it counts, against looking at every candidate, and that a model
// needs no more than its interface.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>

#include "operator/planner/aggregation_space.h"
#include "operator/planner/best_first_search.h"
#include "operator/planner/extended_model.h"
#include "operator/planner/models.h"
#include "operator/planner/searches.h"
#include "operator/planner/wording.h"
#include "tests/unit/operator/planner/chooser.h"
#include "tests/unit/operator/planner/planner_fixtures.h"

namespace lambdadnn {
namespace {

// Times, costs and obstacles drawn for each of 4 numbers x 5 sizes x 3 options.
class DrawnModel : public PerformanceModel {
 public:
  static constexpr int kNumbers = 4;
  static constexpr int kSizes = 5;
  static constexpr int kOptions = 3;

  DrawnModel(uint64_t seed, bool bounds) : bounds_(bounds) {
    Chooser choose(seed);
    for (Forecast& drawn : drawn_) {
      if (choose.Chance(0.3)) drawn.obstacle = static_cast<Limit>(choose.Whole(0, 4));
      drawn.prediction.seconds = choose.Whole(1, 9);
      drawn.prediction.cost = choose.Whole(1, 9);
    }
  }
  static SearchSpace Space() {
    return {.min_functions = 1, .max_functions = kNumbers, .memory_mib = {1, 2, 3, 4, 5}};
  }
  const Forecast& Of(const Choice& choice) const {
    const int pair = (choice.functions - 1) * kSizes + choice.memory_mib - 1;
    const int index = pair * kOptions + choice.option;
    return drawn_[static_cast<size_t>(index)];
  }
  template <typename Visit>
  static void ForEach(Visit visit) {
    for (int n = 1; n <= kNumbers; ++n) {
      for (int m = 1; m <= kSizes; ++m) {
        for (int option = 0; option < kOptions; ++option) visit(Choice{n, m, option});
      }
    }
  }

  // All sizes and options of n, and then one by one.
  void Split(const Box& box, const Ceiling&, std::vector<Box>* parts) override {
    if (box.first_functions != box.last_functions) {
      for (int n = box.first_functions; n <= box.last_functions; ++n) {
        parts->push_back({n, n, box.first_size, box.last_size});
      }
      return;
    }
    for (int size = box.first_size; size <= box.last_size; ++size) {
      for (int option = 0; option < kOptions; ++option) {
        parts->push_back({box.first_functions, box.last_functions, size, size, option, option});
      }
    }
  }
  Bound LowerBound(const Box& box, const Ceiling&) override {
    if (!bounds_) return {};
    Bound least = kImpossible;
    ForEach([&](const Choice& choice) {
      const bool inside =
          choice.functions >= box.first_functions && choice.functions <= box.last_functions &&
          choice.memory_mib - 1 >= box.first_size && choice.memory_mib - 1 <= box.last_size &&
          (!box.IsOne() || choice.option == box.first_option);
      if (!inside) return;
      const Prediction& prediction = Of(choice).prediction;
      least = {std::min(least.seconds, prediction.seconds), std::min(least.cost, prediction.cost)};
    });
    return least;
  }
  std::optional<Limit> Obstacle(const Choice& choice) override {
    const auto obstacle = Of(choice).obstacle;
    const bool early = obstacle && *obstacle <= Limit::kFunctions;
    return early ? obstacle : std::nullopt;
  }
  Forecast Predict(const Choice& choice) override {
    Forecast forecast = Of(choice);
    if (forecast.obstacle == Limit::kNodes) forecast.obstacle.reset();
    return forecast;
  }
  bool FitsOnNodes(const Choice& choice) override { return Of(choice).obstacle != Limit::kNodes; }
  PlanCandidate Describe(const Choice&, const Prediction&) override { return {}; }

 private:
  const bool bounds_;
  std::array<Forecast, static_cast<size_t>(kNumbers) * kSizes * kOptions> drawn_;
};

std::optional<Point> BestOf(const DrawnModel& model, const Order& order) {
  std::optional<Point> best;
  DrawnModel::ForEach([&](const Choice& choice) {
    const Forecast& drawn = model.Of(choice);
    const Point point{drawn.prediction.seconds, drawn.prediction.cost, choice.functions,
                      choice.memory_mib, choice.option};
    if (drawn.obstacle || !order.Allows(point)) return;
    if (!best || order.Better(point, *best)) best = point;
  });
  return best;
}

bool Same(const std::optional<Point>& a, const std::optional<Point>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->functions == b->functions && a->memory_mib == b->memory_mib && a->option == b->option;
}

Objective Deadline(double seconds) {
  Objective objective;
  objective.deadline_seconds = seconds;
  return objective;
}

// The machines are asked only about candidates that would be kept, so they are left out here.
TEST(BestFirstSearch, WithoutBoundsEveryCandidateIsCounted) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    DrawnModel model(seed, false);
    const Order order(Deadline(5));
    Collector collector(order, false);
    SearchSummary summary;
    BestFirstSearch(&model, &collector, &summary).Run(DrawnModel::Space());
    std::array<int64_t, kObstacleCount> refused = {};
    DrawnModel::ForEach([&](const Choice& choice) {
      const auto obstacle = model.Of(choice).obstacle;
      if (obstacle) ++refused[static_cast<size_t>(*obstacle)];
    });
    EXPECT_EQ(summary.pairs, 20);
    EXPECT_EQ(summary.pairs_left_out, 0);
    EXPECT_EQ(summary.candidates, 60);
    EXPECT_EQ(summary.candidates_left_out, 0);
    EXPECT_EQ(summary.evaluated, 60 - refused[0] - refused[1] - refused[2]);
    for (const Limit limit :
         {Limit::kMemory, Limit::kQuota, Limit::kFunctions, Limit::kFunctionTimeout}) {
      const auto index = static_cast<size_t>(limit);
      EXPECT_EQ(summary.refused[index], refused[index]) << "seed " << seed;
    }
    EXPECT_TRUE(Same(collector.Best(), BestOf(model, order))) << "seed " << seed;
  }
}

TEST(BestFirstSearch, WithBoundsItLooksAtLessAndFindsTheSame) {
  int64_t evaluated = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    DrawnModel model(seed, true);
    const Order order(Deadline(Chooser(seed).Whole(1, 9)));
    Collector collector(order, false);
    SearchSummary summary;
    BestFirstSearch(&model, &collector, &summary).Run(DrawnModel::Space());
    const std::optional<Point> best = collector.Best();
    EXPECT_TRUE(Same(best, BestOf(model, order))) << "seed " << seed;
    // Every candidate is accounted for once: within pairs that were left out, or by itself.
    EXPECT_EQ(summary.pairs_left_out * DrawnModel::kOptions + summary.candidates, 60);
    EXPECT_EQ(summary.candidates, summary.candidates_left_out + summary.evaluated +
                                      summary.refused[0] + summary.refused[1] + summary.refused[2]);
    if (best) {
      EXPECT_GE(summary.least_left_out, order.Rank(best->seconds, best->cost)) << "seed " << seed;
    }
    evaluated += summary.evaluated;
  }
  EXPECT_LT(evaluated, 500 * 15);
}

TEST(BestFirstSearch, OneBelowIsEnough) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    DrawnModel model(seed, true);
    const Order order = Order(Deadline(1)).WithoutDeadline();
    const std::optional<Point> best = BestOf(model, order);
    ASSERT_TRUE(best.has_value());
    for (const double more : {0.0, 1.0}) {
      Collector collector = Collector::Below(order, CostRank(best->cost + more));
      SearchSummary summary;
      BestFirstSearch(&model, &collector, &summary).Run(DrawnModel::Space());
      EXPECT_EQ(collector.Satisfied(), more > 0) << "seed " << seed;
    }
  }
}

// 8 functions of at most 3 sizes, of which nothing can run: each candidate is told why.
TEST(SearchSummary, RefusalsEqualBruteForceWhereNothingRuns) {
  for (const Limit limit :
       {Limit::kMemory, Limit::kQuota, Limit::kFunctions, Limit::kNodes, Limit::kFunctionTimeout}) {
    PlannerInput input = MobileNet(1);
    input.options.model = PredictionModel::kExtended;
    input.aggregation.placement = Placement::kDedicated;
    input.limits.min_memory_mib.reset();
    Platform& platform = input.platform;
    platform.memory = {.min_mib = 512, .max_mib = 1024, .step_mib = 256};
    platform.max_functions = limit == Limit::kFunctions ? 1 : 8;
    platform.milli_cpu_per_gib = 500;
    if (limit == Limit::kMemory) input.profile.worker_base_memory_mib = 900;
    if (limit == Limit::kMemory) platform.memory.max_mib = 768;
    if (limit == Limit::kQuota) platform.total_milli_cpu = 100;
    if (limit == Limit::kNodes) platform.nodes = {{4096, 100, 9}};
    if (limit == Limit::kFunctionTimeout) platform.function_timeout_seconds = 0.1;
    const PlanningOutcome outcome = MakePlan(input).value();
    ASSERT_FALSE(outcome.feasible) << LimitName(limit);
    EXPECT_EQ(outcome.certificate.binding, std::vector<Limit>{limit});

    const ExtendedModel model(input);
    std::array<int64_t, kObstacleCount> refused = {};
    int64_t candidates = 0;
    int64_t evaluated = 0;
    for (int n = 1; n <= platform.max_functions; ++n) {
      const WorkerTerms workers = model.Workers(n);
      for (const AggregationPlan& plan : AggregationOptions(input, n)) {
        const AggregationOption option = model.Option(plan);
        for (int m = 512; m <= platform.memory.max_mib; m += 256) {
          ++candidates;
          std::optional<Limit> obstacle = model.Check(workers, m, option);
          if (!obstacle) {
            ++evaluated;
            obstacle = model.Predict(workers, m, option) ? Limit::kNodes : Limit::kFunctionTimeout;
          }
          ++refused[static_cast<size_t>(*obstacle)];
        }
      }
    }
    EXPECT_EQ(outcome.search.refused, refused) << LimitName(limit);
    EXPECT_EQ(outcome.search.candidates, candidates) << LimitName(limit);
    EXPECT_EQ(outcome.search.evaluated, evaluated) << LimitName(limit);
    EXPECT_EQ(outcome.search.pairs_left_out + outcome.search.candidates_left_out, 0);
    EXPECT_EQ(outcome.search.end, SearchEnd::kSpaceCovered);
    EXPECT_EQ(outcome.search.gap, std::nullopt);
  }
}

TEST(SearchSummary, SaysThatNoPlanIsBetter) {
  for (const bool explain : {false, true}) {
    PlannerInput input = OneDCnn(10);
    input.objective.deadline_seconds = 60;
    input.options.explain = explain;
    const SearchSummary search = MakePlan(input)->search;
    EXPECT_EQ(search.pairs, 200 * 33);  // 960 to 3,008 MiB
    EXPECT_EQ(search.pairs_left_out + search.candidates, search.pairs);
    EXPECT_LT(search.evaluated, search.pairs / 5);
    EXPECT_EQ(search.end, SearchEnd::kBoundReached);
    EXPECT_EQ(search.gap, 0.0);
  }
}

TEST(SearchSummary, TellsHowMuchDearerAlgorithm1Is) {
  PlannerInput input = OneDCnn(10);
  input.objective.deadline_seconds = 600;
  const double least = CostRank(MakePlan(input)->chosen.predicted.cost);
  input.options.search = SearchMethod::kAlgorithm1;
  const PlanningOutcome outcome = MakePlan(input).value();
  const double cost = CostRank(outcome.chosen.predicted.cost);
  ASSERT_GT(cost, least);
  EXPECT_EQ(outcome.search.end, SearchEnd::kHeuristic);
  EXPECT_EQ(outcome.search.candidates, outcome.search.evaluated);
  EXPECT_DOUBLE_EQ(*outcome.search.gap, (cost - least) / cost);
}

TEST(ModelKinds, AreFoundByNameAndValue) {
  for (const ModelKind& kind : ModelKinds()) {
    ASSERT_NE(FindModel(kind.name), nullptr);
    EXPECT_EQ(FindModel(kind.name)->model, kind.model);
    EXPECT_EQ(KindOf(kind.model).name, kind.name);
  }
  EXPECT_EQ(ModelKinds().front().model, PlannerOptions{}.model);
  EXPECT_EQ(FindModel("best"), nullptr);
  EXPECT_EQ(SearchKinds().front().method, PlannerOptions{}.search);
  EXPECT_EQ(ModelNames(), "extended, lambdadnn, feng, fasdl");
  for (const SearchKind& kind : SearchKinds()) {
    ASSERT_NE(FindSearch(kind.name), nullptr);
    EXPECT_EQ(FindSearch(kind.name)->method, kind.method);
  }
  EXPECT_EQ(FindSearch("best"), nullptr);
}

// status.plan.binding and `lambdadnn plan` have these names.
TEST(Wording, EveryLimitHasANameAndAMeaning) {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(Limit::kFixed); ++i) {
    const auto limit = static_cast<Limit>(i);
    names.emplace_back(LimitName(limit));
    EXPECT_FALSE(MeaningOf(limit, true).empty());
    EXPECT_FALSE(MeaningOf(limit, false).empty());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"memory", "quota", "functions", "nodes",
                                             "functionTimeout", "deadline", "budget", "batch",
                                             "parameterServerBandwidth", "fixed"}));
}

}  // namespace
}  // namespace lambdadnn
