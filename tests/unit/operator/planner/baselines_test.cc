// SPDX-License-Identifier: Apache-2.0
// How other systems choose: rows whose choice is known by hand, and that none is better than the
// exact search under any model.
#include <gtest/gtest.h>

#include <utility>

#include "operator/planner/candidate.h"
#include "operator/planner/models.h"
#include "operator/planner/searches.h"
#include "operator/planner/wording.h"
#include "tests/unit/operator/planner/chooser.h"
#include "tests/unit/operator/planner/planner_fixtures.h"

namespace lambdadnn {
namespace {

PlanningOutcome Found(PlannerInput input, SearchMethod search, double deadline_seconds) {
  input.objective.deadline_seconds = deadline_seconds;
  input.options.search = search;
  return MakePlan(input).value();
}

void ExpectPlan(const PlanningOutcome& outcome, int functions, int memory_mib) {
  ASSERT_TRUE(outcome.feasible);
  EXPECT_EQ(outcome.chosen.functions, functions);
  EXPECT_EQ(outcome.chosen.memory_mib, memory_mib);
}

constexpr double kLoose = 1e6;

// docs/theory.md, section 1: worked out apart from this code.
TEST(Algorithm1, HasTwoReadings) {
  struct Row {
    double deadline_seconds;
    double first;
    double not_dearer;
  };
  for (const Row& row :
       {Row{90, .01738, .01692}, Row{150, .01861, .01733}, Row{210, .01975, .01764}}) {
    const auto cost = [&](SearchMethod search) {
      return Found(OneDCnn(5), search, row.deadline_seconds).chosen.predicted.cost;
    };
    EXPECT_NEAR(cost(SearchMethod::kAlgorithm1First), row.first, 5e-6) << row.deadline_seconds;
    EXPECT_NEAR(cost(SearchMethod::kAlgorithm1), row.not_dearer, 5e-6) << row.deadline_seconds;
    EXPECT_NEAR(cost(SearchMethod::kExact), .01682, 5e-6) << row.deadline_seconds;
  }
}

// 92 s with 8, 184 s with 4 functions of the largest size.
TEST(Baselines, CirrusDoublesUntilInTime) {
  ExpectPlan(Found(OneDCnn(10), SearchMethod::kCirrus, 120), 8, 3008);
  ExpectPlan(Found(OneDCnn(10), SearchMethod::kCirrus, 60), 16, 3008);
  ExpectPlan(Found(OneDCnn(10), SearchMethod::kCirrus, kLoose), 1, 3008);
  PlannerInput few = OneDCnn(10);
  few.limits.max_functions = 10;
  ExpectPlan(Found(few, SearchMethod::kCirrus, 80), 10, 3008);
}

// At 1 x 960 MiB a size more saves 118 s for 1/16 GiB, a function more 972 s for 15/16 GiB.
TEST(Baselines, OptimusTakesTheLargerGain) {
  ExpectPlan(Found(OneDCnn(10), SearchMethod::kOptimus, 1900), 1, 1024);
  ExpectPlan(Found(OneDCnn(10), SearchMethod::kOptimus, kLoose), 1, 960);
  PlannerInput one_size = OneDCnn(10);
  one_size.limits.max_memory_mib = 960;
  ExpectPlan(Found(one_size, SearchMethod::kOptimus, 950), 3, 960);
}

// 23 functions are the fastest of 3,008 MiB.
TEST(Baselines, MllessStopsWhereFewerAreSlower) {
  ExpectPlan(Found(OneDCnn(10), SearchMethod::kMlless, kLoose), 23, 3008);
  PlannerInput few = OneDCnn(10);
  few.limits.max_functions = 9;
  ExpectPlan(Found(few, SearchMethod::kMlless, kLoose), 9, 3008);
}

// Every function more makes epochs shorter here.
TEST(Baselines, KubeMlAddsAFunctionAfterEachEpoch) {
  ExpectPlan(Found(OneDCnn(10), SearchMethod::kKubeMl, kLoose), 10, 3008);
  ExpectPlan(Found(OneDCnn(1), SearchMethod::kKubeMl, kLoose), 1, 3008);
  PlannerInput few = OneDCnn(10);
  few.limits.max_functions = 4;
  ExpectPlan(Found(few, SearchMethod::kKubeMl, kLoose), 4, 3008);
}

// Two functions share a server's network and take twice as long as one, for the same batch: n goes
// to and fro, at most 199 times.
TEST(Baselines, KubeMlTakesBackWhatMadeEpochsLonger) {
  for (const auto& [epochs, functions] :
       {std::pair(1.0, 1), std::pair(2.0, 2), std::pair(3.0, 1), std::pair(1e9, 2)}) {
    PlannerInput input = OneDCnn(epochs);
    input.limits.max_global_batch_size.reset();
    input.limits.global_batch_size = 512;
    input.platform.parameter_server_network_bytes_per_second = 1e3;
    ExpectPlan(Found(input, SearchMethod::kKubeMl, 1e18), functions, 3008);
  }
}

// 14 x 3,008 MiB: the parameter server's price makes fewer dearer, its network more.
TEST(Baselines, TheLargestMemoryHasItsOwnBestNumber) {
  ExpectPlan(Found(OneDCnn(10), SearchMethod::kLargestMemory, 60), 14, 3008);
}

TEST(Baselines, WhatMissesTheDeadlineIsSaidWithWhatWouldDo) {
  const PlanningOutcome outcome = Found(OneDCnn(10), SearchMethod::kKubeMl, 60);
  ASSERT_FALSE(outcome.feasible);
  EXPECT_EQ(outcome.certificate.kind, Infeasibility::kSearch);
  EXPECT_EQ(outcome.certificate.found->functions, 10);
  EXPECT_EQ(ReasonOf(outcome.certificate),
            "search kubeml ends with 10 functions of 3008 MiB, 73.7 s and $0.03802, beyond the "
            "objective, although 23 functions of 3008 MiB would do; use --search exact");
  // Nothing at all would do.
  EXPECT_EQ(Found(OneDCnn(10), SearchMethod::kKubeMl, 20).certificate.kind,
            Infeasibility::kDeadline);
  EXPECT_EQ(Found(OneDCnn(10), SearchMethod::kLargestMemory, 20).certificate.kind,
            Infeasibility::kDeadline);
}

// A part of the space without a plan in time.
TEST(Baselines, APartWithoutAPlanIsNotTheWhole) {
  PlannerInput input = OneDCnn(10);
  input.profile.training_rate = {.table = {{960, 90}, {3008, 10}}};  // slower with more memory
  const PlanningOutcome outcome = Found(input, SearchMethod::kLargestMemory, 170);
  ASSERT_FALSE(outcome.feasible);
  EXPECT_EQ(outcome.certificate.kind, Infeasibility::kSearch);
  EXPECT_EQ(outcome.certificate.found->memory_mib, 3008);
  EXPECT_LT(outcome.certificate.fastest->memory_mib, 3008);
}

TEST(Baselines, SayWhatTheyNeed) {
  const auto said = [](PlannerInput input, SearchMethod search) {
    input.options.search = search;
    return std::string(MakePlan(input).status().message());
  };
  EXPECT_EQ(said(OneDCnn(1), SearchMethod::kFasDl), "search fasdl needs model fasdl");
  EXPECT_EQ(said(OneDCnn(1), SearchMethod::kLambdaMlAllReduce),
            "search lambdaml-allreduce needs model fasdl");
  PlannerInput extended = OneDCnn(1);
  extended.options.model = PredictionModel::kExtended;
  EXPECT_EQ(said(extended, SearchMethod::kAlgorithm1First),
            "search algorithm1-first needs model lambdadnn");
  PlannerInput budget = OneDCnn(1);
  budget.objective = Objective{};
  budget.objective.budget = 1;
  for (const SearchMethod search :
       {SearchMethod::kAlgorithm1, SearchMethod::kCirrus, SearchMethod::kOptimus,
        SearchMethod::kMlless, SearchMethod::kKubeMl}) {
    EXPECT_EQ(said(budget, search),
              "search " + std::string(KindOf(search).name) + " needs objective.deadlineSeconds");
  }
  EXPECT_EQ(said(budget, SearchMethod::kLargestMemory), "");
}

// Every model, every search that it allows: whatever is found is in time and not cheaper.
TEST(Baselines, NoneIsBetterThanTheExactSearch) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    for (const ModelKind& model : ModelKinds()) {
      Chooser choose(seed);
      PlannerInput input =
          Workload(choose.Scale(1e6, 1e8), choose.Whole(500, 20000), choose.Scale(1e5, 1e8),
                   choose.Whole(1, 64), choose.Whole(64, 512),
                   {.slope = choose.Scale(0.01, 1), .intercept = choose.Real(-20, 20)}, 256,
                   choose.Whole(1, 12));
      input.options.model = model.model;
      input.options.explain = false;
      input.profile.iteration_overhead_seconds = choose.Scale(0.01, 0.5);
      input.platform.memory = {
          .min_mib = 256, .max_mib = 256 * choose.Whole(1, 6), .step_mib = 256};
      input.platform.max_functions = choose.Whole(2, 20);
      input.platform.store_request_seconds = 0.01;
      input.objective.deadline_seconds = 1e-3;
      const auto fastest = MakePlan(input);
      if (!fastest.ok() || !fastest->certificate.fastest) continue;
      input.objective.deadline_seconds = fastest->certificate.fastest_seconds * choose.Scale(1, 20);
      const PlanningOutcome exact = MakePlan(input).value();
      ASSERT_TRUE(exact.feasible);
      for (const SearchKind& kind : SearchKinds()) {
        PlannerInput searched = input;
        searched.options.search = kind.method;
        const auto outcome = MakePlan(searched);
        if (!outcome.ok()) continue;  // needs another model
        EXPECT_EQ(outcome->search.method, kind.method);
        if (!outcome->feasible) {
          EXPECT_EQ(outcome->certificate.kind, Infeasibility::kSearch);
          EXPECT_FALSE(ReasonOf(outcome->certificate).empty());
          continue;
        }
        ++found;
        EXPECT_LE(outcome->chosen.predicted.seconds, *input.objective.deadline_seconds);
        EXPECT_GE(CostRank(outcome->chosen.predicted.cost), CostRank(exact.chosen.predicted.cost))
            << kind.name << " of " << model.name << ", seed " << seed;
      }
    }
  }
  EXPECT_GT(found, 600);
}

TEST(SearchKinds, HaveAtMostOneWayAndARuleEach) {
  for (const SearchKind& kind : SearchKinds()) {
    EXPECT_FALSE(kind.find != nullptr && kind.narrow != nullptr) << kind.name;
    EXPECT_EQ(kind.method == SearchMethod::kExact, kind.find == nullptr && kind.narrow == nullptr)
        << kind.name;
    EXPECT_FALSE(kind.rule.empty());
    EXPECT_LE(kind.rule.size(), 55u) << kind.name;  // beside its name, in 80 columns
    EXPECT_NE(SearchNames().find(kind.name), std::string::npos);
  }
}

}  // namespace
}  // namespace lambdadnn
