// SPDX-License-Identifier: Apache-2.0
// What is learnt of a run while it runs: properties over many true speeds, splits and noises.
#include "operator/controller/planning/online_estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "common/base/statistics.h"

namespace lambdadnn {
namespace {

// 2,000 iterations of 0.8 s of compute and 0.2 s of exchange, in 4 epochs.
Plan TestPlan(int revision = 1) {
  Plan plan;
  plan.revision = revision;
  plan.iterations = 2000;
  plan.iterations_per_epoch = 500;
  plan.predicted.iterations = 2000;
  plan.predicted[Term::kColdStart] = 3;
  plan.predicted[Term::kLoad] = 1;
  plan.predicted[Term::kCompute] = 0.8;
  plan.predicted[Term::kCommunication] = 0.2;
  plan.predicted[Term::kEvaluation] = 40;
  plan.predicted[Term::kCheckpoint] = 2;
  plan.predicted[Term::kRelease] = 1;
  plan.predicted.seconds = plan.predicted.TotalSeconds(2000);
  return plan;
}

OnlineEstimate Fresh(const Plan& plan = TestPlan()) {
  OnlineEstimate estimate;
  estimate.Use(plan, {}, {});
  return estimate;
}

// A run whose iterations take `seconds` each and evaluations 10 s, seen every 10 iterations.
class TimedRun {
 public:
  explicit TimedRun(OnlineEstimate* estimate) : estimate_(estimate) { Tell(); }
  void Iterate(int stretches, double seconds) {
    for (int i = 0; i < 10 * stretches; ++i) {
      if (iteration_ > 0 && iteration_ % 500 == 0) time_ += evaluation;
      time_ += seconds;
      if (++iteration_ % 10 == 0) Tell();
    }
  }
  void Stall(double seconds) { time_ += seconds; }
  int64_t iteration() const { return iteration_; }
  double evaluation = 10;

 private:
  void Tell() { estimate_->ObserveProgress(iteration_, time_); }

  OnlineEstimate* estimate_;
  int64_t iteration_ = 0;
  double time_ = 1000;
};

TEST(OnlineEstimate, WithoutASampleItIsThePrediction) {
  const Plan plan = TestPlan();
  const OnlineEstimate estimate = Fresh(plan);
  EXPECT_EQ(estimate.factors(), TimeFactors{});
  EXPECT_NEAR(estimate.Remaining(0).seconds, plan.predicted.seconds, 1e-9);
  EXPECT_DOUBLE_EQ(estimate.SecondsPerIteration(), 1);
  // 12 % of the iterations with their evaluations, which are compute, and the deviations of the
  // start, of checkpoints and of the release.
  EXPECT_NEAR(estimate.Remaining(0).deviation,
              std::sqrt(std::pow(0.12 * 2040, 2) + std::pow(0.75, 2) + std::pow(0.15, 2) +
                        std::pow(0.8, 2) + std::pow(0.4, 2)),
              2);
}

TEST(OnlineEstimate, OfNoPlanNothingIsKnown) {
  OnlineEstimate estimate;
  EXPECT_FALSE(estimate.known());
  estimate.ObserveProgress(1, 1);
  estimate.ObserveProgress(100, 100);
  estimate.ObserveSlice(10, 1, 1, 1);
  EXPECT_EQ(estimate.stretches(), 0);
  Plan silent = TestPlan();
  silent.predicted = {};
  estimate.Use(silent, {}, {});
  EXPECT_FALSE(estimate.known());
}

TEST(OnlineEstimate, OfAPlanThatPredictsWhatIsNoTimeNothingIsKnown) {
  for (const double seconds :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e300}) {
    for (const TermKind& kind : kTermKinds) {
      Plan plan = TestPlan();
      plan.predicted[kind.term] = seconds;
      EXPECT_FALSE(Fresh(plan).known()) << kind.field << " " << seconds;
    }
  }
}

TEST(OnlineEstimate, AConstantSpeedIsKnownToThreePerCentAfterATenthOfTheJob) {
  for (const double truth : {0.2, 0.5, 0.8, 1.0, 1.3, 2.0, 3.0, 8.0}) {
    OnlineEstimate estimate = Fresh();
    TimedRun run(&estimate);
    run.Iterate(20, truth);
    EXPECT_NEAR(estimate.iteration_factor() / truth, 1, 0.03) << truth;
    EXPECT_LT(estimate.iteration_deviation(), 0.05 * truth) << truth;
    const double left = 1800 * truth + 40 * truth + 3;  // evaluations are as much slower
    EXPECT_NEAR(estimate.Remaining(200).seconds / left, 1, 0.03) << truth;
  }
}

// Of each: iterations of a stretch that vary together, as other load on a machine makes them.
TEST(OnlineEstimate, NoiseLeavesTheForecastNearAndItsDeviationHonest) {
  std::mt19937 random(7);
  struct Case {
    double noise;
    double most_median_error;
    double least_share_within;  // of nine tenths
  };
  for (const auto& [noise, most_median_error, least_share_within] :
       {Case{0, 0.002, 0.99}, {0.05, 0.012, 0.9}, {0.1, 0.025, 0.85}, {0.2, 0.06, 0.6}}) {
    constexpr int kRuns = 400;
    std::vector<double> errors;
    int within = 0;
    for (int i = 0; i < kRuns; ++i) {
      const double truth = std::uniform_real_distribution(0.8, 1.3)(random);
      std::lognormal_distribution varies(-noise * noise / 2, noise);
      OnlineEstimate estimate = Fresh();
      TimedRun run(&estimate);
      run.evaluation = 10 * truth;
      for (int stretch = 0; stretch < 20; ++stretch) run.Iterate(1, truth * varies(random));
      const RemainingTime forecast = estimate.Remaining(200);
      const double left = 1840 * truth + 3;
      errors.push_back(std::abs(forecast.seconds / left - 1));
      within += std::abs(forecast.seconds - left) < 1.645 * forecast.deviation;
    }
    EXPECT_LT(Median(errors), most_median_error) << noise;
    EXPECT_GT(within, kRuns * least_share_within) << noise;
  }
}

TEST(OnlineEstimate, ItsDeviationAllowsForAMachineThatChanges) {
  constexpr int kRuns = 400;
  std::mt19937 random(11);
  std::normal_distribution changes(1.0, 0.03);
  int within = 0;
  for (int i = 0; i < kRuns; ++i) {
    OnlineEstimate estimate = Fresh();
    TimedRun run(&estimate);
    run.Iterate(20, 1);
    const RemainingTime forecast = estimate.Remaining(200);
    within +=
        std::abs(forecast.seconds - (1840 * changes(random) + 3)) < 1.645 * forecast.deviation;
  }
  EXPECT_GT(within, kRuns * 0.85);
}

TEST(OnlineEstimate, OneStallMovesItLittle) {
  OnlineEstimate estimate = Fresh();
  TimedRun run(&estimate);
  run.Iterate(30, 1);
  const double before = estimate.Remaining(run.iteration()).seconds;
  run.Stall(600);
  run.Iterate(1, 1);
  EXPECT_NEAR(estimate.Remaining(run.iteration()).seconds / before, 1, 0.03);
  run.Iterate(10, 1);
  EXPECT_NEAR(estimate.iteration_factor(), 1, 0.03);
}

TEST(OnlineEstimate, StallsThatComeAgainAndAgainCount) {
  OnlineEstimate estimate = Fresh();
  TimedRun run(&estimate);
  for (int i = 0; i < 40; ++i) {
    run.Iterate(3, 1);
    run.Stall(10);
    run.Iterate(1, 1);
  }
  EXPECT_NEAR(estimate.iteration_factor(), 1.25, 0.15);
  EXPECT_GT(estimate.iteration_deviation(), 0.02);
}

TEST(OnlineEstimate, AnotherSpeedIsFollowedWithinFiveStretches) {
  for (const double speed : {0.4, 0.7, 1.6, 3.0}) {
    OnlineEstimate estimate = Fresh();
    TimedRun run(&estimate);
    run.Iterate(40, 1);
    run.Iterate(5, speed);
    EXPECT_NEAR(estimate.iteration_factor() / speed, 1, 0.1) << speed;
  }
}

// The shortest stretches take a quarter of a second: three in a row are no second.
TEST(OnlineEstimate, ASlowSecondIsNotAnotherSpeed) {
  Plan plan = TestPlan();
  for (const Term term : {Term::kCompute, Term::kCommunication, Term::kEvaluation}) {
    plan.predicted[term] *= 0.01;
  }
  OnlineEstimate estimate = Fresh(plan);
  TimedRun run(&estimate);
  run.Iterate(39, 0.01);
  run.Iterate(3, 0.027);
  EXPECT_NEAR(estimate.iteration_factor(), 1, 0.2);
  run.Iterate(1, 0.027);
  EXPECT_NEAR(estimate.iteration_factor(), 2.7, 0.3);
}

TEST(OnlineEstimate, ASmallDriftIsFollowedAsWell) {
  OnlineEstimate estimate = Fresh();
  TimedRun run(&estimate);
  for (int i = 0; i < 100; ++i) run.Iterate(1, 1 + 0.002 * i);
  EXPECT_NEAR(estimate.iteration_factor(), 1.2, 0.08);
}

TEST(OnlineEstimate, WhatIsNoTimeIsIgnored) {
  OnlineEstimate estimate = Fresh();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  estimate.ObserveProgress(0, 5);
  for (const double seconds : {nan, infinity, -infinity, 5.0, 4.0, -100.0}) {
    estimate.ObserveProgress(100, seconds);
  }
  estimate.ObserveProgress(0, 50);
  estimate.ObserveProgress(-7, 50);
  for (const double seconds : {nan, infinity, -1.0, 0.0}) {
    estimate.ObserveSlice(100, seconds, 1, 1);
    estimate.ObserveSlice(100, 1, seconds, 1);
    estimate.ObserveUnpredicted(100, seconds, seconds);
    estimate.ObserveStart(seconds);
    estimate.Resume(100, seconds);
  }
  estimate.ObserveSlice(0, 1, 1, 1);
  estimate.ObserveSlice(-1, 1, 1, 0);
  estimate.ObserveUnpredicted(0, 1, 1);
  EXPECT_EQ(estimate.stretches(), 0);
  EXPECT_EQ(estimate.factors(), TimeFactors{});
}

// The further off, the less the prediction was worth; near it, both count.
TEST(OnlineEstimate, IterationsBeforeThePredictionTellHowFarItIsOff) {
  for (const double times : {0.2, 0.5, 2.0, 5.0}) {
    OnlineEstimate estimate = Fresh();
    estimate.ObserveUnpredicted(50, 40 * times, 10);
    EXPECT_NEAR(estimate.factors().compute, times, 0.05 * std::max(1.0, times));
    EXPECT_NEAR(estimate.factors().exchange, 1, 0.2);
    EXPECT_EQ(estimate.factors().start, 1);
  }
  OnlineEstimate near = Fresh();
  near.ObserveUnpredicted(50, 40 * 1.1, 10);
  EXPECT_GT(near.factors().compute, 1.02);
  EXPECT_LT(near.factors().compute, 1.1);
  // One function alone exchanges nothing.
  OnlineEstimate alone = Fresh();
  alone.ObserveUnpredicted(50, 80, 0);
  EXPECT_NEAR(alone.factors().compute, 2, 0.1);
}

// What was learnt before the plan is in its times already.
TEST(OnlineEstimate, APlanThatWasMadeWithCorrectionsBeginsAsPredicted) {
  OnlineEstimate estimate;
  estimate.Use(TestPlan(), {}, {2, 0.5, 1, 3});
  EXPECT_EQ(estimate.factors(), TimeFactors{});
  EXPECT_EQ(estimate.corrections(), (TimeFactors{2, 0.5, 1, 3}));
}

TEST(OnlineEstimate, TimeBetweenSlicesIsNoneOfAnIterations) {
  OnlineEstimate estimate = Fresh();
  TimedRun run(&estimate);
  for (int slice = 0; slice < 20; ++slice) {
    run.Iterate(5, 1);
    estimate.Interrupt();
    run.Stall(30);
    run.Iterate(1, 1);  // begins the next one
  }
  EXPECT_NEAR(estimate.iteration_factor(), 1, 0.01);
}

TEST(OnlineEstimate, EvaluationsAreExpectedAtTheEndsOfEpochs) {
  OnlineEstimate estimate = Fresh();
  TimedRun run(&estimate);
  run.Iterate(150, 1);  // over two ends
  EXPECT_NEAR(estimate.iteration_factor(), 1, 0.005);
  EXPECT_NEAR(estimate.Remaining(1500).seconds, 500 + 20 + 3, 5);
  EXPECT_NEAR(estimate.Remaining(1501).seconds, 499 + 10 + 3, 5);
  EXPECT_NEAR(estimate.Remaining(2000).seconds, 10 + 3, 1);
}

TEST(OnlineEstimate, RecordsTellHowAnIterationDivides) {
  OnlineEstimate estimate = Fresh();
  TimedRun run(&estimate);
  run.Iterate(20, 1);
  // Half of the compute, the rest is exchange.
  for (int slice = 0; slice < 10; ++slice) {
    for (int worker = 0; worker < 4; ++worker) estimate.ObserveSlice(200, 80, 120, 4);
    run.Iterate(10, 1);
  }
  EXPECT_NEAR(estimate.factors().compute, 0.5, 0.1);
  EXPECT_NEAR(estimate.factors().exchange, 3, 0.4);
  EXPECT_NEAR(estimate.iteration_factor(), 1, 0.02);
}

TEST(OnlineEstimate, RecordsAloneTellTheSpeedOfSlicesWithoutAStretch) {
  OnlineEstimate estimate = Fresh();
  for (int slice = 0; slice < 20; ++slice) estimate.ObserveSlice(10, 16, 4, 1);
  EXPECT_NEAR(estimate.iteration_factor(), 2, 0.1);
}

TEST(OnlineEstimate, AStartCountsOnceAndForWhatIsStillToStart) {
  OnlineEstimate estimate = Fresh();
  const double before = estimate.Remaining(0).seconds;
  estimate.ObserveStart(12);
  estimate.ObserveStart(1200);
  EXPECT_GT(estimate.start_factor(), 2);
  EXPECT_LT(estimate.start_factor(), 3);
  EXPECT_NEAR(estimate.Remaining(0).seconds - before, 4 * (estimate.start_factor() - 1), 1e-9);
  EXPECT_NEAR(estimate.iteration_factor(), 1, 1e-9);
}

TEST(OnlineEstimate, ANewRevisionGoesOnWithTheFactorsOfTheOldOne) {
  OnlineEstimate estimate = Fresh();
  TimedRun run(&estimate);
  run.Iterate(40, 2);
  const double sure = estimate.iteration_deviation();
  Plan next = TestPlan(2);
  next.first_iteration = 400;
  next.predicted.iterations = 1600;
  estimate.Use(next, {}, {});
  EXPECT_NEAR(estimate.iteration_factor(), 2, 0.05);
  EXPECT_GT(estimate.iteration_deviation(), 2 * sure);
  EXPECT_EQ(estimate.stretches(), 0);
}

TEST(OnlineEstimate, OfAPlanMadeWithWhatWasLearntTheSameTimesAreExpected) {
  OnlineEstimate estimate = Fresh();
  TimedRun run(&estimate);
  run.Iterate(40, 2);
  const TimeFactors learnt = estimate.corrections();
  Plan next = TestPlan(2);
  next.first_iteration = 400;
  next.predicted.iterations = 1600;
  next.predicted[Term::kCompute] *= learnt.compute;
  next.predicted[Term::kCommunication] *= learnt.exchange;
  estimate.Use(next, {}, learnt);
  EXPECT_NEAR(estimate.iteration_factor(), 1, 1e-9);
  EXPECT_NEAR(estimate.SecondsPerIteration(), 2, 0.05);
  EXPECT_NEAR(estimate.corrections().compute, learnt.compute, 1e-9);
}

TEST(OnlineEstimate, TheSamePlanAgainForgetsNothing) {
  OnlineEstimate estimate = Fresh();
  TimedRun run(&estimate);
  run.Iterate(20, 2);
  const double factor = estimate.iteration_factor();
  estimate.Use(TestPlan(), {}, {});
  EXPECT_EQ(estimate.iteration_factor(), factor);
  EXPECT_EQ(estimate.stretches(), 20);
}

TEST(OnlineEstimate, ANextProcessGoesOnWithWhatTheLastOneTold) {
  OnlineEstimate before = Fresh();
  TimedRun run(&before);
  run.Iterate(40, 3);
  OnlineEstimate after = Fresh();
  after.Resume(400, std::round(before.Remaining(400).seconds));
  EXPECT_NEAR(after.iteration_factor(), before.iteration_factor(), 0.01);
  EXPECT_NEAR(after.Remaining(400).seconds, before.Remaining(400).seconds, 1);
  EXPECT_GT(after.iteration_deviation(), 0.1);
}

TEST(OnlineEstimate, NothingIsLeftOfAJobThatIsDoneButItsEnd) {
  Plan plan = TestPlan();
  plan.predicted[Term::kEvaluation] = 0;
  EXPECT_NEAR(Fresh(plan).Remaining(2000).seconds, 3, 1e-9);
  EXPECT_NEAR(Fresh(plan).Remaining(3000).seconds, 3, 1e-9);
}

TEST(ExpectedTimes, DivideCheckpointsIntoThoseOnTheWayAndTheTrainedModels) {
  Plan plan = TestPlan();
  plan.checkpoint_every = 100;
  WorkloadProfile profile;
  // 2 s: the last one, 19 before it, and the model.
  profile.checkpoint_seconds = 0.5;
  profile.checkpoint_cpu_seconds = 0.05;
  profile.finish_cpu_seconds = 0.55;
  const ExpectedTimes expected = ExpectedTimesOf(plan, profile);
  EXPECT_DOUBLE_EQ(expected.exchange, 0.2 + 0.95 / 2000);
  EXPECT_DOUBLE_EQ(expected.end, 1.05 + 1);
  EXPECT_DOUBLE_EQ(expected.evaluation, 10);
  EXPECT_DOUBLE_EQ(expected.start, 4);
}

}  // namespace
}  // namespace lambdadnn
