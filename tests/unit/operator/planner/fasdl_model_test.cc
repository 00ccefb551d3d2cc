// SPDX-License-Identifier: Apache-2.0
// FasDL's model: a prediction by hand, the exact search against every W, M, K and B, and its
// heuristic and LambdaML's patterns beside it.
#include "operator/planner/fasdl_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "operator/planner/candidate.h"
#include "operator/planner/fasdl_search.h"
#include "operator/planner/searches.h"
#include "operator/planner/wording.h"
#include "tests/unit/operator/planner/chooser.h"
#include "tests/unit/operator/planner/planner_fixtures.h"

namespace lambdadnn {
namespace {

// One size, 1,024 MiB: R = 100/s, B = 80 MB/s, 10 ms a request; b = 5 samples.
PlannerInput SmallFasDl() {
  PlannerInput input = Workload(0, 10000, 16e6, 10, 1000, {.slope = 100.0 / 1024}, 1024, 2);
  input.options.model = PredictionModel::kFasDl;
  input.profile.iteration_overhead_seconds = 0.05;
  Platform& platform = input.platform;
  platform.memory = {.min_mib = 1024, .max_mib = 1024, .step_mib = 64};
  platform.store_bytes_per_second = 0;
  platform.function_store_intercept = 80e6;
  platform.store_request_seconds = 0.01;
  platform.prices = {.gib_second = 2e-5, .put_request = 5e-6, .get_request = 4e-7};
  return input;
}

TEST(FasDlModel, OnePredictionByHand) {
  const PlannerInput input = SmallFasDl();
  const FasDlModel model(input);
  const FasDlMemory memory = model.AtMemory(1024);
  // 4 workers, 2 of them aggregators of 8 MB each: 0.11 s an object.
  const KReduce reduce = model.Reduce(4, 2, memory);
  EXPECT_NEAR(reduce.up_seconds, 2 * 0.11, 1e-12);
  const double sync = 0.00119 * 4 * (8 + 33.7) * (2 - 2 / 4.0);
  EXPECT_NEAR(reduce.aggregate_seconds, 0.11 + 0.11 * 3 + sync, 1e-12);
  EXPECT_NEAR(reduce.down_seconds, 0.11, 1e-12);
  // 8 PUT, 12 GET.
  EXPECT_NEAR(reduce.request_price, 8 * 5e-6 + 12 * 4e-7, 1e-15);
  // 73.8 samples fill T_agg.
  EXPECT_EQ(model.OthersBatch(10, reduce), 84);
  EXPECT_EQ(model.GlobalBatch(10, reduce), 20 + 168);
  const Prediction prediction = model.Predict(10, reduce, memory);
  EXPECT_EQ(prediction.iterations, 106);  // 20,000 / 188
  EXPECT_NEAR(prediction[Term::kCompute], 0.15, 1e-12);
  EXPECT_NEAR(prediction.seconds, 106 * (0.15 + reduce.Seconds()), 1e-9);
  EXPECT_NEAR(prediction.cost, 4 * 2e-5 * prediction.seconds + 106 * reduce.request_price, 1e-12);
}

TEST(FasDlModel, TheOthersTakeWhatTheGlobalBatchLeaves) {
  PlannerInput input = SmallFasDl();
  input.limits.max_global_batch_size = 100;
  const FasDlModel model(input);
  const KReduce reduce = model.Reduce(4, 2, model.AtMemory(1024));
  EXPECT_EQ(model.OthersBatch(10, reduce), 40);
  EXPECT_EQ(model.GlobalBatch(10, reduce), 100);
  EXPECT_EQ(model.LargestBatch(4, 2), 49);
  EXPECT_EQ(model.OthersBatch(49, reduce), 1);
  // K = W: all have the same batch.
  EXPECT_EQ(model.OthersBatch(10, model.Reduce(4, 4, model.AtMemory(1024))), 10);
  EXPECT_EQ(model.LargestBatch(4, 4), 25);
}

TEST(FasDlModel, SerialisingTakesCpuTimeOfTheFunctionsShare) {
  PlannerInput input = SmallFasDl();
  input.profile.transfer.push_seconds_per_byte = 1e-9;
  input.profile.transfer.pull_seconds_per_byte = 2e-9;
  EXPECT_NEAR(FasDlModel(input).AtMemory(1024).serialise_seconds, 0.048, 1e-12);
  input.platform.milli_cpu_per_gib = 500;
  EXPECT_NEAR(FasDlModel(input).AtMemory(1024).serialise_seconds, 0.096, 1e-12);
}

TEST(FasDlModel, APlanSaysBothBatches) {
  PlannerInput input = SmallFasDl();
  input.limits.min_functions = input.limits.max_functions.emplace(4);
  input.aggregation.shards = 2;
  const PlanCandidate plan = MakePlan(input)->chosen;
  EXPECT_EQ(plan.aggregation.shards, 2);
  EXPECT_EQ(plan.aggregation.placement, Placement::kWorkers);
  EXPECT_EQ(plan.global_batch_size, 2 * plan.aggregator_batch_size + 2 * plan.local_batch_size);
  input.aggregation.shards = 4;
  EXPECT_EQ(MakePlan(input)->chosen.aggregator_batch_size, 0);
}

TEST(FasDlModel, SaysWhatItNeeds) {
  const auto mentions = [](auto change, const char* text) {
    PlannerInput input = SmallFasDl();
    change(&input);
    const std::string said(MakePlan(input).status().message());
    EXPECT_NE(said.find(text), std::string::npos) << said;
  };
  mentions(
      [](PlannerInput* in) {
        in->limits.max_global_batch_size.reset();
        in->limits.global_batch_size = 100;
      },
      "give training.maxGlobalBatchSize");
  mentions([](PlannerInput* in) { in->platform.function_store_intercept = 0; },
           "(needed by model fasdl)");
  mentions([](PlannerInput* in) { in->aggregation.layers = {1, 2, 4}; }, "aggregation.layers");
  mentions([](PlannerInput* in) { in->aggregation.placement = Placement::kDedicated; },
           "aggregation.placement");
  mentions([](PlannerInput* in) { in->aggregation.transport = TransportKind::kDirect; },
           "ObjectStore");
  mentions(
      [](PlannerInput* in) {
        in->limits.max_functions = 4;
        in->aggregation.shards = 5;
      },
      "there are at most 4");
  mentions(
      [](PlannerInput* in) {
        in->aggregation.shards = 4;
        in->aggregation.spread = 2;
      },
      "aggregation.spread");
  mentions(
      [](PlannerInput* in) {
        in->options.search = SearchMethod::kFasDl;
        in->profile.iteration_overhead_seconds = 0;
      },
      "give profile.iterationOverheadSeconds");
  for (const SearchMethod search : {SearchMethod::kFasDl, SearchMethod::kLambdaMlAllReduce,
                                    SearchMethod::kLambdaMlScatterReduce}) {
    mentions(
        [search](PlannerInput* in) {
          in->options.search = search;
          in->aggregation.shards = 1;
        },
        "chooses the shards; leave out aggregation.shards");
  }
}

struct FasDlResult {
  double seconds = 0;
  double cost = 0;
};

// Written again from docs/theory.md, section 6.
FasDlResult FasDlEquations(const PlannerInput& input, int w, int m, int k, int b) {
  const Platform& platform = input.platform;
  const auto rate = [&](double memory) {
    return input.profile.training_rate.slope * memory + input.profile.training_rate.intercept;
  };
  const double step_samples =
      input.profile.iteration_overhead_seconds * std::max(0.0, rate(platform.memory.max_mib));
  const double shard = input.profile.model_bytes / k;
  const double object = platform.store_request_seconds + shard / platform.function_store_intercept;
  const double sync = 0.00119 * w * (shard / 1e6 + 33.7) * (2 - static_cast<double>(k) / w);
  const double aggregate = object + object * (w - 1) + sync;
  const double exchange = object * k + aggregate + object * (k == 1 ? 1 : k - 1);
  const double train = (b + step_samples) / rate(m);
  const int largest = *input.limits.max_global_batch_size;
  double others = b;
  if (k < w) {
    others = std::min(std::round(aggregate * rate(m) + b),
                      std::floor((largest - b * k) / static_cast<double>(w - k)));
  }
  const double iterations =
      std::max(1.0, std::floor(static_cast<double>(input.profile.training_samples) *
                               input.limits.epochs / (b * k + others * (w - k))));
  FasDlResult tried;
  tried.seconds = iterations * (exchange + train);
  tried.cost = w * m / 1024.0 * platform.prices.gib_second * tried.seconds +
               iterations * (platform.prices.put_request * k * w +
                             platform.prices.get_request * 2 * k * (w - 1));
  return tried;
}

PlannerInput RandomFasDlInput(uint64_t seed) {
  Chooser choose(seed);
  PlannerInput input = Workload(
      0, choose.Whole(100, 20000), choose.Scale(1e5, 1e8), 1, choose.Whole(8, 120),
      {.slope = choose.Scale(0.01, 1), .intercept = choose.Real(-60, 20)}, 128, choose.Whole(1, 4));
  input.options.model = PredictionModel::kFasDl;
  input.options.explain = choose.Chance(0.3);
  input.profile.iteration_overhead_seconds = choose.Scale(0.001, 0.2);
  Platform& platform = input.platform;
  platform.memory = {.min_mib = 128, .max_mib = 256 * choose.Whole(1, 4), .step_mib = 128};
  platform.max_functions = choose.Whole(1, 10);
  platform.store_bytes_per_second = 0;
  platform.function_store_intercept = choose.Scale(1e7, 1e9);
  platform.store_request_seconds = choose.Chance(0.2) ? 0 : choose.Scale(1e-4, 0.1);
  platform.prices = {.gib_second = choose.Scale(1e-6, 1e-4),
                     .put_request = choose.Chance(0.3) ? 0 : choose.Scale(1e-7, 1e-4),
                     .get_request = choose.Chance(0.3) ? 0 : choose.Scale(1e-8, 1e-5)};
  return input;
}

template <typename Visit>
void ForEachFasDlCandidate(const PlannerInput& input, Visit visit) {
  const int largest = *input.limits.max_global_batch_size;
  const TrainingRate& rate = input.profile.training_rate;
  for (int m = 128; m <= input.platform.memory.max_mib; m += 128) {
    if (rate.slope * m + rate.intercept <= 0) continue;
    for (int w = 1; w <= std::min(input.platform.max_functions, largest); ++w) {
      for (int k = 1; k <= w; ++k) {
        for (int b = 1; b * k + (w - k) <= largest; ++b)
          visit(FasDlEquations(input, w, m, k, b), k, w);
      }
    }
  }
}

TEST(FasDlModel, TheSearchEqualsTryingEveryCandidate) {
  int feasible = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    PlannerInput input = RandomFasDlInput(seed);
    double fastest = 1e300;
    ForEachFasDlCandidate(input, [&](const FasDlResult& tried, int, int) {
      fastest = std::min(fastest, tried.seconds);
    });
    if (fastest >= 1e300) continue;
    const double deadline = fastest * Chooser(seed ^ 0x5eed).Scale(0.8, 20);
    double cheapest = 1e300;
    double cheapest_one = 1e300;   // K = 1
    double cheapest_each = 1e300;  // K = W
    ForEachFasDlCandidate(input, [&](const FasDlResult& tried, int k, int w) {
      if (tried.seconds > deadline) return;
      cheapest = std::min(cheapest, tried.cost);
      if (k == 1) cheapest_one = std::min(cheapest_one, tried.cost);
      if (k == w) cheapest_each = std::min(cheapest_each, tried.cost);
    });
    input.objective.deadline_seconds = deadline;
    const auto expect = [&](SearchMethod search, double least) {
      PlannerInput searched = input;
      searched.options.search = search;
      const PlanningOutcome outcome = MakePlan(searched).value();
      ASSERT_EQ(outcome.feasible, least < 1e300) << "seed " << seed;
      if (!outcome.feasible) return;
      ASSERT_NEAR(outcome.chosen.predicted.cost, least, 2e-9 + 1e-12 * least) << "seed " << seed;
      ASSERT_LE(outcome.chosen.predicted.seconds, deadline) << "seed " << seed;
      ++feasible;
    };
    expect(SearchMethod::kExact, cheapest);
    expect(SearchMethod::kLambdaMlAllReduce, cheapest_one);
    expect(SearchMethod::kLambdaMlScatterReduce, cheapest_each);
  }
  EXPECT_GT(feasible, 600);
}

TEST(FasDlSearch, TakesTheBatchOfEightyPerCent) {
  EXPECT_EQ(HeuristicBatch(FasDlModel(SmallFasDl())), 20);
}

// One size, up to three workers: K = W for each, and then fewer K.
TEST(FasDlSearch, FollowsItsRuleByHand) {
  PlannerInput input = SmallFasDl();
  input.platform.max_functions = 3;
  const auto cost = [&](int w, int k) { return FasDlEquations(input, w, 1024, k, 20).cost; };
  const auto seconds = [&](int w, int k) { return FasDlEquations(input, w, 1024, k, 20).seconds; };
  // In time are two and three workers; two are cheaper.
  ASSERT_LT(cost(2, 2), cost(3, 3));
  ASSERT_LT(seconds(3, 3), seconds(2, 2));
  ASSERT_LT(seconds(2, 2), seconds(1, 1));
  input.objective.deadline_seconds = 1.001 * seconds(2, 2);
  input.options.search = SearchMethod::kFasDl;
  const PlanCandidate plan = MakePlan(input)->chosen;
  EXPECT_EQ(plan.functions, 2);
  // One aggregator is faster, since the other trains meanwhile.
  ASSERT_LT(seconds(2, 1), seconds(2, 2));
  EXPECT_EQ(plan.aggregation.shards, 1);
  EXPECT_EQ(plan.aggregator_batch_size, 20);
  EXPECT_NEAR(plan.predicted.seconds, seconds(2, 1), 1e-9);
}

// The rule of docs/theory.md, section 6, written again.
std::optional<FasDlResult> ByTheRule(const PlannerInput& input, int batch) {
  const double deadline = *input.objective.deadline_seconds;
  const TrainingRate& rate = input.profile.training_rate;
  const auto runs = [&](int m) { return rate.slope * m + rate.intercept > 0; };
  const int largest_mib = input.platform.memory.max_mib;
  std::optional<FasDlResult> best;
  int workers = 0;
  int memory_mib = 0;
  for (int w = 1; w * batch <= *input.limits.max_global_batch_size; ++w) {
    if (w > input.platform.max_functions || !runs(largest_mib)) break;
    if (FasDlEquations(input, w, largest_mib, w, batch).seconds > deadline) continue;
    for (int m = 128; m <= largest_mib; m += 128) {
      if (!runs(m)) continue;
      const FasDlResult result = FasDlEquations(input, w, m, w, batch);
      if (result.seconds > deadline || (best && result.cost >= best->cost)) continue;
      best = result;
      workers = w;
      memory_mib = m;
      break;
    }
  }
  for (int k = workers - 1; k >= 1; --k) {
    const FasDlResult fewer = FasDlEquations(input, workers, memory_mib, k, batch);
    if (fewer.seconds >= best->seconds) break;
    best = fewer;
  }
  return best;
}

TEST(FasDlSearch, FollowsItsRuleOnRandomInputs) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    PlannerInput input = RandomFasDlInput(seed);
    const int batch = HeuristicBatch(FasDlModel(input));
    if (batch < 1) continue;
    input.options.search = SearchMethod::kFasDl;
    input.objective.deadline_seconds = Chooser(seed ^ 0xda).Scale(1, 1e4);
    const std::optional<FasDlResult> expected = ByTheRule(input, batch);
    const auto outcome = MakePlan(input);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    ASSERT_EQ(outcome->feasible, expected.has_value()) << "seed " << seed;
    if (!expected) continue;
    ++found;
    ASSERT_NEAR(outcome->chosen.predicted.seconds, expected->seconds, 1e-9 * expected->seconds)
        << "seed " << seed;
    ASSERT_NEAR(outcome->chosen.predicted.cost, expected->cost, 1e-9 * expected->cost);
  }
  EXPECT_GT(found, 60);
}

TEST(FasDlSearch, IsNeverBetterThanTheExactSearch) {
  int both = 0;
  int dearer = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    PlannerInput input = RandomFasDlInput(seed);
    if (HeuristicBatch(FasDlModel(input)) < 1) continue;
    input.options.explain = false;
    input.objective.deadline_seconds = 1e-3;
    const auto fastest = MakePlan(input);
    if (!fastest.ok() || !fastest->certificate.fastest) continue;
    input.objective.deadline_seconds =
        fastest->certificate.fastest_seconds * Chooser(seed).Scale(1, 30);
    const PlanningOutcome exact = MakePlan(input).value();
    input.options.search = SearchMethod::kFasDl;
    const PlanningOutcome found = MakePlan(input).value();
    if (!found.feasible) continue;
    ++both;
    ASSERT_LE(found.chosen.predicted.seconds, *input.objective.deadline_seconds);
    ASSERT_LE(CostRank(exact.chosen.predicted.cost), CostRank(found.chosen.predicted.cost));
    dearer += found.chosen.predicted.cost > 1.05 * exact.chosen.predicted.cost ? 1 : 0;
  }
  EXPECT_GT(both, 50);
  EXPECT_GT(dearer, 10);
}

}  // namespace
}  // namespace lambdadnn
