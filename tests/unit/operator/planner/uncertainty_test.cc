// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/uncertainty.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/base/statistics.h"
#include "operator/planner/wording.h"
#include "tests/unit/operator/planner/random_input.h"

namespace lambdadnn {
namespace {

Prediction SomePrediction() {
  Prediction predicted;
  predicted[Term::kColdStart] = 2;
  predicted[Term::kCompute] = 0.3;
  predicted[Term::kCommunication] = 0.1;
  predicted[Term::kEvaluation] = 1;
  return predicted;
}

TEST(Uncertainty, TermsAreIndependentAndIterationsAreNot) {
  const DeviationShares shares = DeviationSharesOf({}, 1);
  Prediction once = SomePrediction();
  AddDeviations(shares, 1, &once);
  Prediction many = SomePrediction();
  AddDeviations(shares, 100, &many);
  const double start = shares[Term::kColdStart] * 2;
  const double evaluation = shares[Term::kEvaluation] * 1;
  const double iteration = shares[Term::kCompute] * 0.4;
  EXPECT_DOUBLE_EQ(once.DeviationOf(Term::kColdStart), start);
  EXPECT_NEAR(once.deviation, std::hypot(start, evaluation, iteration), 1e-12);
  EXPECT_NEAR(many.deviation, std::hypot(start, evaluation, 100 * iteration), 1e-12);
  // Of one iteration, however many there are.
  EXPECT_EQ(once.term_deviations, many.term_deviations);
}

// What is in compute or in communication is less certain than both together.
TEST(Uncertainty, ThePartsOfAnIterationAreLessCertainThanTheirSum) {
  Prediction predicted = SomePrediction();
  predicted[Term::kColdStart] = predicted[Term::kEvaluation] = 0;
  AddDeviations(DeviationSharesOf({}, 1), 1, &predicted);
  EXPECT_GT(predicted.DeviationOf(Term::kCompute) + predicted.DeviationOf(Term::kCommunication),
            predicted.deviation);
  predicted[Term::kCommunication] = 0;
  AddDeviations(DeviationSharesOf({}, 1), 1, &predicted);
  EXPECT_EQ(predicted.DeviationOf(Term::kCompute), predicted.deviation);
}

TEST(Uncertainty, StartsThatScatterAreLessCertain) {
  WorkloadProfile profile;
  const double share = DeviationSharesOf(profile, 1)[Term::kColdStart];
  profile.cold_start_deviation_seconds = 1;
  EXPECT_EQ(DeviationSharesOf(profile, 1)[Term::kColdStart], share) << "of a start of no time";
  profile.cold_start_seconds = 2;
  EXPECT_EQ(DeviationSharesOf(profile, 1)[Term::kColdStart], 0.5);
  profile.cold_start_deviation_seconds = 0.1;
  EXPECT_EQ(DeviationSharesOf(profile, 1)[Term::kColdStart], share) << "it counts where it is more";
}

TEST(Uncertainty, AWorseProfileIsLessCertain) {
  WorkloadProfile good;
  WorkloadProfile bad;
  bad.residual = 0.3;
  const double share = DeviationSharesOf(good, 1)[Term::kCompute];
  EXPECT_NEAR(DeviationSharesOf(bad, 1)[Term::kCompute], std::hypot(share, 0.15), 1e-12);
  EXPECT_EQ(DeviationSharesOf(bad, 1)[Term::kColdStart],
            DeviationSharesOf(good, 1)[Term::kColdStart]);
}

TEST(Uncertainty, SmallQuotasAreLessCertain) {
  const auto share = [](double cores) { return DeviationSharesOf({}, cores)[Term::kCompute]; };
  EXPECT_GT(share(0.05), share(0.1));
  EXPECT_GT(share(0.1), share(0.25));
  EXPECT_EQ(share(0.25), share(1));
  EXPECT_EQ(DeviationSharesOf({}, 0.05)[Term::kLoad], DeviationSharesOf({}, 1)[Term::kLoad]);
}

TEST(Uncertainty, APredictionTellsTheShareOfItsIterations) {
  for (const double cores : {0.05, 1.0}) {
    const DeviationShares shares = DeviationSharesOf({}, cores);
    Prediction predicted = SomePrediction();
    EXPECT_EQ(IterationShareOf(predicted, 100), 0);
    AddDeviations(shares, 100, &predicted);
    EXPECT_NEAR(IterationShareOf(predicted, 100), shares[Term::kCompute], 1e-9);
  }
  EXPECT_EQ(IterationShareOf({}, 100), 0);
}

TEST(Uncertainty, DeviationsAreThoseOfTheConfidence) {
  Objective objective;
  EXPECT_EQ(DeadlineDeviations(objective), 0) << "no deadline";
  objective.deadline_seconds = 60;
  EXPECT_NEAR(DeadlineDeviations(objective), 1.2816, 1e-4);
  objective.confidence = 0.5;
  EXPECT_NEAR(DeadlineDeviations(objective), 0, 1e-12);
  objective.confidence = 0.99;
  EXPECT_NEAR(DeadlineDeviations(objective), 2.3263, 1e-4);
}

// The plan for a higher confidence is never cheaper, and in time with it.
TEST(Uncertainty, PlansAreInTimeWithTheConfidence) {
  int dearer = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    PlannerInput input = RandomExtendedInput(seed);
    input.objective = Objective{};
    input.objective.deadline_seconds = 1e-3;
    const PlanningOutcome impossible = MakePlan(input).value();
    if (!impossible.certificate.fastest) continue;
    ASSERT_EQ(impossible.certificate.confidence, kDefaultConfidence);
    const double deadline = impossible.certificate.nearest_deadline_seconds * 1.5;
    input.objective.deadline_seconds = deadline;
    double cost = 0;
    for (const double confidence : {0.5, 0.8, 0.9}) {
      input.objective.confidence = confidence;
      const PlanningOutcome outcome = MakePlan(input).value();
      ASSERT_TRUE(outcome.feasible) << "seed " << seed;
      ASSERT_EQ(outcome.confidence, confidence);
      const Prediction& predicted = outcome.plan.predicted;
      ASSERT_GT(predicted.deviation, 0);
      ASSERT_LE(predicted.SecondsAt(NormalQuantile(confidence)), deadline * (1 + 1e-9));
      ASSERT_GE(predicted.cost, cost * (1 - 1e-9)) << "seed " << seed;
      dearer += cost > 0 && predicted.cost > cost * 1.001 ? 1 : 0;
      cost = predicted.cost;
    }
  }
  EXPECT_GT(dearer, 5);
}

// With this confidence no plan is in time, with less there is one: the sentence says which.
TEST(Uncertainty, TheCertificateSpeaksOfTheConfidence) {
  // One in which something can run.
  PlannerInput input = RandomExtendedInput(2);
  input.objective = Objective{};
  input.objective.deadline_seconds = 1e-9;
  input.objective.confidence = 0.5;
  const double expected = MakePlan(input)->certificate.nearest_deadline_seconds;
  ASSERT_GT(expected, 0);
  input.objective.deadline_seconds = expected * 1.01;
  ASSERT_TRUE(MakePlan(input)->feasible);
  input.objective.confidence = 0.95;
  const PlanningOutcome late = MakePlan(input).value();
  ASSERT_FALSE(late.feasible);
  EXPECT_NE(ReasonOf(late.certificate).find(" in 95 % of runs"), std::string::npos)
      << ReasonOf(late.certificate);
  input.objective.deadline_seconds = late.certificate.nearest_deadline_seconds;
  EXPECT_TRUE(MakePlan(input)->feasible);
}

TEST(Uncertainty, WithoutADeadlineTimesAreTheExpectedOnes) {
  PlannerInput input = RandomExtendedInput(2);
  input.objective = Objective{};
  input.objective.deadline_seconds = 1e9;
  EXPECT_EQ(MakePlan(input)->confidence, kDefaultConfidence);
  input.objective.deadline_seconds.reset();
  input.objective.budget = 1e9;
  EXPECT_EQ(MakePlan(input)->confidence, 0);
}

TEST(Uncertainty, AConfidenceNeedsADeadlineAndARange) {
  PlannerInput input = RandomExtendedInput(1);
  input.objective = Objective{};
  input.objective.budget = 1;
  input.objective.confidence = 0.9;
  EXPECT_EQ(MakePlan(input).status().message(),
            "objective.confidence needs deadlineSeconds or finishBy");
  input.objective.deadline_seconds = 1;
  for (const double wrong : {0.49, 0.999, std::nan("")}) {
    input.objective.confidence = wrong;
    EXPECT_EQ(MakePlan(input).status().message(), "objective.confidence must be from 0.5 to 0.99");
  }
}

}  // namespace
}  // namespace lambdadnn
