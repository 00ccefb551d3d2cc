// SPDX-License-Identifier: Apache-2.0
// The three workloads of docs/theory.md under λDNN's model: known facts, and the optimum found by
// looking at every (n, m).
#include <gtest/gtest.h>

#include "operator/planner/algorithm1.h"
#include "operator/planner/candidate.h"
#include "operator/planner/lambda_dnn_model.h"
#include "operator/planner/wording.h"
#include "tests/unit/operator/planner/planner_fixtures.h"

namespace lambdadnn {
namespace {

PlanningOutcome PlanFor(PlannerInput input, double deadline_seconds) {
  input.objective.deadline_seconds = deadline_seconds;
  return MakePlan(input).value();
}

TEST(LambdaDnnGolden, OneDCnnTakesThePublishedTimes) {
  const PlannerInput input = OneDCnn(10);
  EXPECT_NEAR(PredictPlan(input, 14, 3008)->predicted.seconds, 52.7, 0.05);
  EXPECT_NEAR(PredictPlan(input, 23, 3008)->predicted.seconds, 44.8, 0.05);
}

TEST(LambdaDnnGolden, TheParameterServersPriceMakesFewFunctionsDear) {
  const PlannerInput input = OneDCnn(10);
  EXPECT_NEAR(PredictPlan(input, 1, 960)->predicted.cost, 0.081, 0.0005);
  EXPECT_NEAR(PredictPlan(input, 14, 960)->predicted.cost, 0.034, 0.0005);
}

TEST(LambdaDnnGolden, TermsOfOnePredictionByHand) {
  // 1DCNN, n = 14, m = 3008: R = 292, b_l = 32, b_g = 448.
  const PlanCandidate plan = PredictPlan(OneDCnn(10), 14, 3008).value();
  EXPECT_EQ(plan.global_batch_size, 448);
  EXPECT_DOUBLE_EQ(plan.local_batch_size, 32);
  EXPECT_DOUBLE_EQ(plan.iterations, 150000.0 / 448);
  EXPECT_DOUBLE_EQ(plan.predicted[Term::kLoad], 41.1 / (14 * 115));
  EXPECT_DOUBLE_EQ(plan.predicted[Term::kCompute], 32 / 292.0);
  EXPECT_DOUBLE_EQ(plan.predicted[Term::kCommunication], 4.0 / 84);
  EXPECT_DOUBLE_EQ(plan.predicted.cost,
                   (14 * 3008 / 1024.0 * 1.66667e-5 + 2.6e-5) * plan.predicted.seconds);
}

TEST(LambdaDnnGolden, LocalBatchShrinksAndTheServerSaturates) {
  // n = 20: 20 x 32 > 512, and 20 x 84 > 1200 MB/s.
  const PlanCandidate plan = PredictPlan(OneDCnn(10), 20, 960).value();
  EXPECT_EQ(plan.global_batch_size, 512);
  EXPECT_DOUBLE_EQ(plan.local_batch_size, 25.6);
  EXPECT_DOUBLE_EQ(plan.predicted[Term::kCommunication], 4.0 / (1200.0 / 20));
  EXPECT_NEAR(plan.predicted[Term::kCompute], 25.6 / 87.2, 1e-12);
}

// Worked out apart from this code, from the equations and the table of docs/theory.md, by trying
// every n <= 200 and every m in steps of 64 MiB.
TEST(LambdaDnnGolden, ThePlansOfTheThreeWorkloads) {
  struct Row {
    const char* name;
    PlannerInput input;
    double deadline;
    int functions;
    int memory_mib;
    double seconds;
    double cost;
  };
  for (const Row& row : {Row{"1DCNN", OneDCnn(10), 60, 15, 2368, 59.508475, 0.0359506264},
                         Row{"1DCNN", OneDCnn(10), 120, 14, 1280, 105.854353, 0.0336264611},
                         Row{"MobileNet", MobileNet(5), 600, 11, 1792, 592.252234, 0.2054131965},
                         Row{"MobileNet", MobileNet(5), 1200, 8, 1728, 753.470224, 0.1891213651},
                         Row{"ResNet50", ResNet50(2), 1500, 8, 2496, 893.343741, 0.3135642338}}) {
    const Plan plan = PlanFor(row.input, row.deadline).plan;
    EXPECT_EQ(plan.functions, row.functions) << row.name << " " << row.deadline;
    EXPECT_EQ(plan.memory_mib, row.memory_mib) << row.name << " " << row.deadline;
    EXPECT_NEAR(plan.predicted.seconds, row.seconds, 1e-6) << row.name << " " << row.deadline;
    EXPECT_NEAR(plan.predicted.cost, row.cost, 1e-10) << row.name << " " << row.deadline;
  }
}

struct Golden {
  const char* name;
  PlannerInput input;
  double deadline_seconds;
};

// Each workload over the deadlines from impossible to loose, against every candidate.
TEST(LambdaDnnGolden, WorkloadsEqualTheScanAtEveryDeadline) {
  for (const Golden& golden :
       {Golden{"1DCNN", OneDCnn(10), 40}, Golden{"MobileNet", MobileNet(5), 400},
        Golden{"ResNet50", ResNet50(2), 1000}}) {
    double previous = 1e300;
    int feasible = 0;
    for (double deadline = golden.deadline_seconds; deadline < 40 * golden.deadline_seconds;
         deadline *= 1.07) {
      PlannerInput input = golden.input;
      input.objective.deadline_seconds = deadline;
      const LambdaDnnModel model(input);
      double least = 1e300;
      for (int m = *input.limits.min_memory_mib; m <= 3008; m += 64) {
        for (int n = 1; n <= 200; ++n) {
          const Prediction terms = model.Predict(n, m);
          if (terms.seconds <= deadline) least = std::min(least, CostRank(terms.cost));
        }
      }
      const PlanningOutcome outcome = MakePlan(input).value();
      ASSERT_EQ(outcome.feasible, least < 1e300) << golden.name << " " << deadline;
      if (!outcome.feasible) continue;
      ++feasible;
      ASSERT_EQ(CostRank(outcome.plan.predicted.cost), least) << golden.name << " " << deadline;
      ASSERT_LE(least, previous);
      previous = least;
    }
    EXPECT_GT(feasible, 10) << golden.name;
  }
}

// Where the published algorithm pays more for a looser deadline, the exact search does not.
TEST(LambdaDnnGolden, Algorithm1CanBeDearer) {
  int dearer = 0;
  for (double deadline = 60; deadline < 2000; deadline *= 1.05) {
    PlannerInput input = OneDCnn(10);
    input.objective.deadline_seconds = deadline;
    const PlanningOutcome exact = MakePlan(input).value();
    input.options.search = SearchMethod::kAlgorithm1First;
    const PlanningOutcome published = MakePlan(input).value();
    ASSERT_TRUE(exact.feasible && published.feasible) << deadline;
    ASSERT_LE(exact.plan.predicted.cost, published.plan.predicted.cost + kCostQuantum);
    dearer += published.plan.predicted.cost > exact.plan.predicted.cost * 1.01 ? 1 : 0;
  }
  EXPECT_GT(dearer, 5);
}

TEST(Algorithm1Bounds, FirstFormIsTheLeastNWhileTheBatchGrows) {
  const PlannerInput input = OneDCnn(10);
  const LambdaDnnModel model(input);
  const MemoryTerms memory = model.AtMemory(3008);
  const FunctionBounds bounds = Algorithm1Bounds(model, memory, 100);
  EXPECT_EQ(bounds.upper, 14);
  EXPECT_LE(model.Predict(static_cast<int>(bounds.lower), memory).seconds, 100);
  EXPECT_GT(model.Predict(static_cast<int>(bounds.lower) - 1, memory).seconds, 100);
}

TEST(Algorithm1Bounds, SecondFormHoldsOnceTheBatchIsFull) {
  PlannerInput input = OneDCnn(10);
  input.platform.parameter_server_network_bytes_per_second = 84e8;  // never saturated here
  const LambdaDnnModel model(input);
  const MemoryTerms memory = model.AtMemory(960);
  const FunctionBounds bounds = Algorithm1Bounds(model, memory, 80);
  EXPECT_EQ(bounds.upper, 100);
  EXPECT_GT(bounds.lower, 16);  // 512 / 32
  EXPECT_LE(model.Predict(static_cast<int>(bounds.lower), memory).seconds, 80);
  EXPECT_GT(model.Predict(static_cast<int>(bounds.lower) - 1, memory).seconds, 80);
}

TEST(Algorithm1Bounds, NoNWhereCommunicationAloneMissesTheDeadline) {
  const PlannerInput input = OneDCnn(10);
  const LambdaDnnModel model(input);
  // b_gmax κ <= μ: 292 iterations of 0.0476 s are more than 13 s.
  EXPECT_EQ(Algorithm1Bounds(model, model.AtMemory(3008), 13).lower, 0);
}

TEST(LambdaDnnGolden, InfeasibleIsSaidWithTheFastestPlan) {
  const PlanningOutcome outcome = PlanFor(OneDCnn(10), 20);
  ASSERT_FALSE(outcome.feasible);
  const InfeasibilityCertificate& certificate = outcome.certificate;
  EXPECT_EQ(certificate.fastest->functions, 23);
  EXPECT_EQ(certificate.fastest->memory_mib, 3008);
  EXPECT_NEAR(certificate.fastest_seconds, 44.8, 0.05);
  EXPECT_EQ(certificate.nearest_deadline_seconds, certificate.fastest_seconds);
  EXPECT_EQ(NamesOf(certificate.binding),
            (std::vector<std::string>{"deadline", "memory", "batch", "parameterServerBandwidth"}));
  EXPECT_NE(ReasonOf(certificate).find("23 functions of 3008 MiB"), std::string::npos);
  EXPECT_TRUE(PlanFor(OneDCnn(10), certificate.nearest_deadline_seconds).feasible);
}

TEST(LambdaDnnGolden, ABudgetTooSmallIsSaidInDollars) {
  PlannerInput input = OneDCnn(10);
  input.objective = Objective{};
  input.objective.budget = 0.0005;
  const InfeasibilityCertificate certificate = MakePlan(input)->certificate;
  EXPECT_EQ(ReasonOf(certificate),
            "no plan costs at most $0.0005000: the cheapest, 14 functions of 1280 MiB, costs "
            "$0.03363; raise objective.budget to that");
  input.objective.budget = 0.03363;
  EXPECT_TRUE(MakePlan(input)->feasible);
}

TEST(LambdaDnnGolden, ADeadlineThatCostsNothingDoesNotBind) {
  const PlanningOutcome tight = PlanFor(OneDCnn(10), 60);
  EXPECT_EQ(tight.plan.binding.front(), "deadline");
  const PlanningOutcome loose = PlanFor(OneDCnn(10), 1e6);
  for (const std::string& name : loose.plan.binding) EXPECT_NE(name, "deadline");
}

TEST(LambdaDnnGolden, TiesGoToFewerFunctionsAndLessMemory) {
  PlannerInput input = OneDCnn(10);
  input.platform.parameter_server_price_per_second = 0;
  input.profile.training_bytes = 0;
  // Without a price of the parameter server and without saturation, n T is constant in n.
  const PlanningOutcome outcome = PlanFor(input, 1e6);
  EXPECT_EQ(outcome.plan.functions, 1);
}

TEST(LambdaDnnGolden, RunnersUpHaveOtherNumbersOfFunctions) {
  const PlanningOutcome outcome = PlanFor(MobileNet(5), 1500);
  ASSERT_TRUE(outcome.feasible);
  ASSERT_EQ(outcome.runners_up.size(), 3u);
  double previous = CostRank(outcome.plan.predicted.cost);
  for (const PlanCandidate& candidate : outcome.runners_up) {
    EXPECT_NE(candidate.functions, outcome.plan.functions);
    EXPECT_LE(candidate.predicted.seconds, 1500);
    EXPECT_GE(CostRank(candidate.predicted.cost), previous);
    previous = CostRank(candidate.predicted.cost);
  }
  int chosen = 0;
  for (const ParetoPoint& point : outcome.pareto_front) chosen += point.chosen ? 1 : 0;
  EXPECT_EQ(chosen, 1);
}

}  // namespace
}  // namespace lambdadnn
