// SPDX-License-Identifier: Apache-2.0
// Plans whose workers cannot keep their shares of the data.
#include <gtest/gtest.h>

#include "operator/planner/extended_model.h"
#include "operator/planner/wording.h"
#include "tests/unit/operator/planner/simple_input.h"

namespace lambdadnn {
namespace {

constexpr double kMib = 1 << 20;

// 4 workers of 1 GiB; each has a quarter of 8000 samples of 1 MiB, and all else is 200 MiB and a
// little.
PlannerInput Large() {
  PlannerInput input = Simple();
  input.profile.training_samples = 8000;
  input.profile.training_bytes = 8000 * 1e5;
  input.profile.worker_base_memory_mib = 200;
  input.profile.loaded_bytes_per_sample = kMib;
  input.profile.stream_requests_per_sample = 1;
  return input;
}

TEST(StreamedPlan, AShareThatDoesNotFitIsStreamedWhereSamplesCanBeReadAgain) {
  PlannerInput input = Large();
  const PlanningOutcome streamed = MakePlan(input).value();
  ASSERT_TRUE(streamed.feasible);
  // 5 copies of the vector are 0.3 MiB.
  EXPECT_EQ(streamed.plan.sample_memory_mib, static_cast<int>(0.9 * (1024 - 200.3125)));
  EXPECT_NEAR(streamed.chosen.share_mib, 2000, 1e-9);
  EXPECT_NEAR(WorkerMibOf(streamed.plan, input.profile, input.limits), 200.3125 + 741, 1);

  input.profile.stream_requests_per_sample = 0;
  const PlanningOutcome refused = MakePlan(input).value();
  EXPECT_FALSE(refused.feasible);
  EXPECT_EQ(refused.certificate.binding, std::vector<Limit>{Limit::kMemory});
  EXPECT_NE(ReasonOf(refused.certificate).find("2201 MiB"), std::string::npos);

  input.profile.loaded_bytes_per_sample = 0.4 * kMib;
  EXPECT_EQ(MakePlan(input)->plan.sample_memory_mib, 0) << "it fits";
}

TEST(StreamedPlan, ABatchMustFit) {
  PlannerInput input = Large();
  // 12 samples, two batches of them as numbers, fingerprints: 108 MiB, and a tenth more.
  const double least = ExtendedModel(input).Workers(4).memory.least_mib();
  EXPECT_NEAR(least, 200.1875 + (12 + 2 * 12 * 4 + 1) / 0.9, 0.1);
  input.objective.fixed = Objective::Fixed{4, static_cast<int>(least)};
  const PlanningOutcome outcome = MakePlan(input).value();
  EXPECT_FALSE(outcome.feasible);
  EXPECT_EQ(outcome.certificate.binding, std::vector<Limit>{Limit::kMemory});
  input.objective.fixed = Objective::Fixed{4, static_cast<int>(least) + 1};
  EXPECT_TRUE(MakePlan(input)->feasible);
}

int LeastMib(const PlannerInput& input) {
  return static_cast<int>(ExtendedModel(input).Workers(4).memory.least_mib()) + 1;
}

// Per iteration, of a batch of 8 (7.5 on average) that is not kept at all.
PlannerInput NothingKept() {
  PlannerInput input = Large();
  input.profile.training_bytes = 8e3 * 8000;
  input.profile.load_cpu_seconds_per_sample = 0.01;
  input.profile.store_request_seconds = 0;
  input.profile.store_bytes_per_second = 0;
  input.objective.fixed = Objective::Fixed{4, LeastMib(input)};
  return input;
}

double Compute(const PlannerInput& input) { return Predicted(input).predicted[Term::kCompute]; }

TEST(StreamedPlan, OnACoreOfItsOwnReadingIsHiddenBehindTheStepUntilItTakesLonger) {
  PlannerInput input = NothingKept();
  PlannerInput kept = input;
  kept.profile.loaded_bytes_per_sample = 1;
  const double step = Compute(kept);
  // No quota: a thread beside that of the step.
  EXPECT_DOUBLE_EQ(Compute(input), step);
  input.profile.load_cpu_seconds_per_sample = 2;
  EXPECT_NEAR(Compute(input), 8 * 2, 0.01);
  input.limits.mixup = true;
  input.objective.fixed->memory_mib = LeastMib(input);
  EXPECT_NEAR(Compute(input), 2 * 8 * 2, 0.5) << "partners are read as well";
  // The store's time is the reader's alone.
  PlannerInput slow = NothingKept();
  slow.platform.store_request_seconds = 1;
  EXPECT_NEAR(Compute(slow) + Predicted(slow).predicted[Term::kCommunication],
              std::max(step + Predicted(slow).predicted[Term::kCommunication], 8 * 1 + 8 * 0.01),
              0.05);
}

TEST(StreamedPlan, UnderAQuotaItsCpuTimeAdds) {
  PlannerInput input = NothingKept();
  PlannerInput kept = input;
  kept.profile.loaded_bytes_per_sample = 1;
  for (PlannerInput* const in : {&input, &kept}) {
    // Half a core each.
    in->platform.milli_cpu_per_gib = 500.0 * 1024 / input.objective.fixed->memory_mib;
    in->platform.total_milli_cpu = 8000;
  }
  const auto iteration = [](const PlannerInput& in) {
    return Predicted(in).predicted.IterationSeconds();
  };
  // (CPU time of the step + that of reading) / quota.
  EXPECT_NEAR(iteration(input) - iteration(kept), 8 * 0.01 / 0.5, 0.01);
  // A second core is the reader's.
  const double half_a_core = input.platform.milli_cpu_per_gib;
  input.platform.milli_cpu_per_gib = kept.platform.milli_cpu_per_gib = 4 * half_a_core;
  input.platform.total_milli_cpu = kept.platform.total_milli_cpu = 80000;
  input.profile.load_cpu_seconds_per_sample = 0.001;
  EXPECT_GE(iteration(input), iteration(kept));
}

TEST(StreamedPlan, AnEvaluationWaitsForWhatItReadsAgain) {
  PlannerInput input = NothingKept();
  input.profile.evaluation_samples = 400;
  input.profile.evaluation_rate = {.intercept = 100};
  PlannerInput kept = input;
  kept.profile.loaded_bytes_per_sample = 1;
  input.objective.fixed->memory_mib = kept.objective.fixed->memory_mib = LeastMib(input);
  const auto evaluation = [](const PlannerInput& in) {
    return Predicted(in).predicted[Term::kEvaluation];
  };
  // 100 test samples a worker, after each of two epochs.
  EXPECT_NEAR(evaluation(input) - evaluation(kept), 2 * 100 * 0.01, 1e-6);
}

TEST(StreamedPlan, WhatProfilingMeasuredOfReadingCountsBeforeWhatExchangesTake) {
  PlannerInput input = NothingKept();
  input.profile.store_request_seconds = OptionalQuantity(1, Origin::kMeasured);
  input.profile.transfer.pull_seconds = 1;
  input.profile.stream_cpu_seconds_per_sample = 0.5;
  input.profile.stream_seconds_per_sample = 15;
  const auto iteration = [](const PlannerInput& in) {
    return Predicted(in).predicted.IterationSeconds();
  };
  EXPECT_NEAR(iteration(input), 8 * (0.5 + 15), 0.01);
  // Four read at once from a store that has a hundred bytes a second: what one waits for them more.
  input.profile.stream_bytes_per_sample = 10;
  input.profile.store_bytes_per_second = OptionalQuantity(100, Origin::kMeasured);
  input.profile.training_bytes = 0;
  input.profile.model_bytes = 4;
  input.platform.block_elements = 1;
  input.objective.fixed->memory_mib = LeastMib(input);
  EXPECT_NEAR(iteration(input), 8 * (0.5 + 15 + 10 * (4.0 - 1) / 100), 0.01);
  // A person's word goes before both.
  input.platform.store_request_seconds = 30;
  EXPECT_GE(iteration(input), 8 * (0.5 + 30 + 10 * 4.0 / 100) - 0.01);
}

TEST(StreamedPlan, ReadsAgainAreInTheBill) {
  PlannerInput input = NothingKept();
  input.platform.prices.get_request = 1e-3;
  input.platform.prices.put_request = 1e-2;
  const double without = Predicted(input).bill.get_requests;
  input.profile.stream_requests_per_sample = 1.5;
  input.profile.open_requests = 7;
  input.profile.open_lists = 2;
  input.profile.load_requests_per_sample = 0.25;
  const PlanCandidate candidate = Predicted(input);
  const double trained = ExtendedModel(input).Workers(4).samples;  // of one worker, in two epochs
  EXPECT_NEAR(candidate.bill.get_requests - without, 4 * (0.5 * trained + 7 + 2000 * 0.25), 1);
  EXPECT_GE(trained, 2 * 2000);
  EXPECT_NEAR(PriceOf(input.platform.prices, candidate.bill), candidate.predicted.cost, 1e-9);
  // What is kept is loaded once.
  input.profile.loaded_bytes_per_sample = 1;
  EXPECT_NEAR(Predicted(input).bill.get_requests, without - 4 * trained + 4 * (7 + 2000 * 0.25), 1);
}

TEST(StreamedPlan, TestSamplesShareTheirRequests) {
  PlannerInput input = NothingKept();
  input.profile.evaluation_samples = 400;
  input.profile.evaluation_rate = {.intercept = 100};
  input.profile.stream_cpu_seconds_per_sample = 0.01;
  input.profile.stream_seconds_per_sample = 0.5;
  input.objective.fixed->memory_mib = LeastMib(input);
  const auto evaluation = [&] { return Predicted(input).predicted[Term::kEvaluation]; };
  const double alone = evaluation();
  input.profile.load_requests_per_sample = 0.01;
  EXPECT_NEAR(alone - evaluation(), 2 * 100 * 0.5 * (1 - 0.01 - 1.0 / 256), 0.1);
}

TEST(StreamedPlan, MoreMemoryKeepsMoreAndTakesNoLonger) {
  PlannerInput input = Large();
  input.profile.load_cpu_seconds_per_sample = 0.5;
  input.platform.memory.max_mib = 4096;
  double before = 1e9;
  for (const int mib : {512, 768, 1024, 1536, 2048, 2560}) {
    input.objective.fixed = Objective::Fixed{4, mib};
    const double seconds = Predicted(input).predicted.seconds;
    EXPECT_LE(seconds, before) << mib;
    before = seconds;
  }
}

}  // namespace
}  // namespace lambdadnn
