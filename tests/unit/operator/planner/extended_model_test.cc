// SPDX-License-Identifier: Apache-2.0
// The terms of the extended model, each worked out by hand.
#include "operator/planner/extended_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/base/statistics.h"
#include "common/plan/poll_schedule.h"
#include "common/plan/slice_cost.h"
#include "operator/planner/planner.h"
#include "tests/unit/operator/planner/simple_input.h"

namespace lambdadnn {
namespace {

TEST(ExtendedModel, CountsWholeIterationsAndTheShortLastBatch) {
  // 30, 30, 30, 10 over 4 workers: 8, 8, 8 and 3 samples on the busiest, twice.
  const PlanCandidate plan = Predicted(Simple());
  EXPECT_EQ(plan.predicted.iterations, 8);
  EXPECT_EQ(plan.local_batch_size, 8);
  EXPECT_EQ(plan.global_batch_size, 30);
  EXPECT_DOUBLE_EQ(plan.predicted[Term::kCompute] * 8, 2 * (8 + 8 + 8 + 3) / 10.0);
  EXPECT_DOUBLE_EQ(plan.predicted.seconds, 5.4);
}

TEST(ExtendedModel, FactorsOfEarlierRunsMultiplyItsTerms) {
  PlannerInput input = Simple();
  input.profile.evaluation_samples = 40;
  input.profile.evaluation_rate = {.intercept = 20};
  input.platform.store_request_seconds = 0.01;
  const Prediction before = Predicted(input).predicted;
  ASSERT_GT(before[Term::kCommunication], 0);
  input.profile.run = {.compute = 2, .evaluation = 3, .store = 4, .store_workers = 9, .direct = 9};
  const Prediction after = Predicted(input).predicted;
  EXPECT_DOUBLE_EQ(after[Term::kCompute], 2 * before[Term::kCompute]);
  EXPECT_NEAR(after[Term::kCommunication], 4 * before[Term::kCommunication], 1e-12);
  EXPECT_DOUBLE_EQ(after[Term::kEvaluation], 3 * before[Term::kEvaluation]);
  EXPECT_EQ(after[Term::kLoad], before[Term::kLoad]);
  input.profile.run = {.store_workers = 9, .direct = 9, .direct_workers = 9};
  EXPECT_EQ(Predicted(input).predicted.seconds, before.seconds) << "of other exchanges";
}

TEST(ExtendedModel, PartOfAnEpochIsRoundedUpToIterations) {
  PlannerInput input = Simple();
  input.limits.epochs = 0.6;  // 2.4 of 4 iterations
  EXPECT_EQ(Predicted(input).predicted.iterations, 3);
}

TEST(ExtendedModel, ABatchOfAllSamplesIsOneIteration) {
  PlannerInput input = Simple();
  input.limits.global_batch_size = 100;
  EXPECT_EQ(Predicted(input).predicted.iterations, 2);
  input.limits.global_batch_size = 101;
  EXPECT_FALSE(MakePlan(input).ok());
}

TEST(ExtendedModel, LargestBatchGrowsWithTheWorkersUpToItsLimit) {
  PlannerInput input = Simple();
  input.limits.global_batch_size.reset();
  input.limits.local_batch_size = 8;
  input.limits.max_global_batch_size = 20;
  input.objective.fixed = Objective::Fixed{2, 1024};
  EXPECT_EQ(Predicted(input).global_batch_size, 16);
  input.objective.fixed = Objective::Fixed{4, 1024};
  EXPECT_EQ(Predicted(input).global_batch_size, 20);
  EXPECT_EQ(Predicted(input).local_batch_size, 5);
}

TEST(ExtendedModel, LoadsItsShareAtItsShareOfTheStore) {
  PlannerInput input = Simple();
  input.platform.store_bytes_per_second = 40;  // 10 for each of 4
  input.platform.function_store_intercept = 25;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kLoad], 1000 / (4 * 10.0));
  input.platform.store_bytes_per_second = 400;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kLoad], 1000 / (4 * 25.0));
}

TEST(ExtendedModel, AddsColdStartEvaluationAndOverhead) {
  PlannerInput input = Simple();
  const double before = Predicted(input).predicted.seconds;
  input.profile.cold_start_seconds = 3;
  input.profile.evaluation_samples = 80;
  input.profile.evaluation_rate = {.intercept = 20};
  input.profile.iteration_overhead_seconds = 0.5;
  const Prediction predicted = Predicted(input).predicted;
  EXPECT_DOUBLE_EQ(predicted[Term::kColdStart], 3);
  EXPECT_DOUBLE_EQ(predicted[Term::kEvaluation], 2 * 20 / 20.0);
  EXPECT_DOUBLE_EQ(predicted.seconds, before + 3 + 2 + 8 * 0.5);
}

// 4 workers of a quarter of a core, 1 GiB each, on 2 cores; a step takes 0.4 s of it, 0.1 s of CPU.
PlannerInput QuarterCores() {
  PlannerInput input = Simple();
  input.platform.milli_cpu_per_gib = 250;
  input.platform.total_milli_cpu = 2000;
  input.platform.cpu_burst_seconds = 100;
  input.profile.training_rate = {.intercept = 4 / 0.4};  // local batch 4
  input.profile.training_samples = 96;
  input.limits.global_batch_size = 16;
  input.aggregation.layers = {1, 4};
  return input;
}

// What a simulated iteration differs from its mean over all of a run.
constexpr double kOfPeriods = 0.02;

TEST(ExtendedModel, AFractionOfACorePaysForTheExchangeInCpuTime) {
  PlannerInput input = QuarterCores();
  const Prediction idle = Predicted(input).predicted;
  EXPECT_NEAR(idle.IterationSeconds(), 0.4, kOfPeriods);
  input.profile.transfer.push_seconds = 0.004;
  input.profile.transfer.pull_seconds = 0.001;
  // The waits fit into quota that the burst keeps, the exchange's own CPU time does not.
  const double paid = 0.4 + 0.005 / 0.25;
  EXPECT_GE(Predicted(input).predicted.IterationSeconds(), paid - 1e-9);
  EXPECT_NEAR(Predicted(input).predicted.IterationSeconds(), paid, kOfPeriods);
  input.platform.cpu_burst_seconds = 0;
  input.platform.store_request_seconds = 0.1;
  EXPECT_GT(Predicted(input).predicted.IterationSeconds(), paid + kOfPeriods);
}

TEST(ExtendedModel, DoorbellsArePaidForWhereObjectsLieInTheStore) {
  PlannerInput input = QuarterCores();
  input.platform.cpu_burst_seconds = 0;
  const double idle = Predicted(input).predicted.IterationSeconds();
  input.profile.doorbell = {0.002, 0.003};
  // A worker rings once and is told once; the root rings for each of 4 workers.
  EXPECT_GE(Predicted(input).predicted.IterationSeconds(), idle + 0.005 / 0.25 - kOfPeriods);
  input.profile.direct = kAssumedDirect;
  input.aggregation.transport = TransportKind::kDirect;
  const double direct = Predicted(input).predicted.IterationSeconds();
  input.profile.doorbell = {};
  EXPECT_EQ(Predicted(input).predicted.IterationSeconds(), direct);
}

// What a worker waits for in the exchange saves it quota, so that it computes faster after it: as
// fast as 4 workers can on 2 cores, if there is a burst that keeps it all.
TEST(ExtendedModel, QuotaSavedInTheExchangeShortensTheComputePhase) {
  PlannerInput input = QuarterCores();
  input.platform.store_request_seconds = 1;
  EXPECT_NEAR(Predicted(input).predicted[Term::kCompute], 0.2, kOfPeriods);
  input.platform.cpu_burst_seconds = 0;
  const Prediction without = Predicted(input).predicted;
  EXPECT_GT(without[Term::kCompute], 0.3 - kOfPeriods) << "one period's quota at its beginning";
  EXPECT_LT(without[Term::kCompute], 0.4);
}

TEST(ExtendedModel, PeriodsDoNotMatterWithWholeCores) {
  PlannerInput input = QuarterCores();
  input.platform.milli_cpu_per_gib = 1000;
  input.platform.total_milli_cpu = 8000;
  input.aggregation.server_memory_mib = 1024;
  input.platform.store_request_seconds = 0.01;
  const Prediction before = Predicted(input).predicted;
  input.platform.cpu_period_seconds = 0.02;
  EXPECT_EQ(Predicted(input).predicted, before);
}

TEST(ExtendedModel, AStepBesideItsSamplesTakesItsShareOfACore) {
  PlannerInput input = QuarterCores();
  input.profile.iteration_cpu_seconds = 0.01;
  input.platform.cpu_burst_seconds = 0;
  EXPECT_NEAR(Predicted(input).predicted.IterationSeconds(), 0.4 + 0.01 / 0.25, kOfPeriods);
  input.platform.milli_cpu_per_gib = 0;
  EXPECT_NEAR(Predicted(input).predicted[Term::kCompute], 0.4 + 0.01, 1e-9);
}

TEST(ExtendedModel, ColdStartsShareTheMachinesCores) {
  PlannerInput input = QuarterCores();
  input.profile.cold_start_seconds = 0.8;
  input.profile.start_cpu_seconds = 0.5;
  EXPECT_NEAR(Predicted(input).predicted[Term::kColdStart], 0.8 + 0.5, 1e-9);
  input.aggregation.layers.clear();
  input.objective.fixed->functions = 2;
  EXPECT_NEAR(Predicted(input).predicted[Term::kColdStart], 0.8, 1e-9);
  input.platform.total_milli_cpu = 0;  // a cluster that does not say: each has its own
  input.objective.fixed->functions = 4;
  EXPECT_NEAR(Predicted(input).predicted[Term::kColdStart], 0.8, 1e-9);
  input.platform.nodes = {{65536, 1000, 10}, {65536, 1000, 10}};
  EXPECT_NEAR(Predicted(input).predicted[Term::kColdStart], 0.8 + 0.5, 1e-9);
}

TEST(ExtendedModel, TheSlowestOfManyWorkersIsWaitedFor) {
  PlannerInput input = QuarterCores();
  input.platform.milli_cpu_per_gib = 0;
  input.profile.store_request_seconds = 1;
  const double before = Predicted(input).predicted[Term::kCommunication];
  input.profile.store_deviation_seconds = 0.01;
  EXPECT_NEAR(Predicted(input).predicted[Term::kCommunication],
              before + 0.01 * std::sqrt(2.0) * ExpectedLargest(input.objective.fixed->functions),
              1e-9);
  input.aggregation.layers.clear();
  input.objective.fixed->functions = 1;  // no other worker to wait for
  const double alone = Predicted(input).predicted[Term::kCommunication];
  input.profile.store_deviation_seconds = 0;
  EXPECT_NEAR(Predicted(input).predicted[Term::kCommunication], alone, 1e-9);
}

TEST(ExtendedModel, ReadingTheDataTakesItsShareOfACore) {
  PlannerInput input = QuarterCores();
  const Prediction before = Predicted(input).predicted;
  input.profile.evaluation_samples = 800;
  input.profile.load_cpu_seconds_per_sample = 0.001;
  const auto samples = static_cast<double>(input.profile.training_samples + 800);
  const double each = samples / input.objective.fixed->functions * 0.001 / 0.25;
  const Prediction after = Predicted(input).predicted;
  EXPECT_NEAR(after[Term::kLoad], before[Term::kLoad] + each, 1e-9);
  EXPECT_NEAR(after.seconds, before.seconds + each, 1e-9);
}

TEST(ExtendedModel, FewerEvaluationsTakeLessTime) {
  PlannerInput input = QuarterCores();
  input.limits.epochs = 5;
  input.profile.evaluation_samples = 800;
  input.profile.evaluation_rate = input.profile.training_rate;
  const double each_epoch = Predicted(input).predicted[Term::kEvaluation];
  EXPECT_GT(each_epoch, 0);
  input.limits.evaluate_every = 2;  // after epochs 2, 4 and 5
  EXPECT_NEAR(Predicted(input).predicted[Term::kEvaluation], each_epoch * 3 / 5, 1e-9);
}

TEST(ExtendedModel, FunctionsTakeTheirTimeToGo) {
  PlannerInput input = QuarterCores();
  const Prediction before = Predicted(input).predicted;
  input.profile.release_seconds = 2.5;
  const Prediction after = Predicted(input).predicted;
  EXPECT_EQ(after[Term::kRelease], 2.5);
  EXPECT_NEAR(after.seconds, before.seconds + 2.5, 1e-9);
}

TEST(ExtendedModel, AStartUnderQuotaTakesItsShareOfACore) {
  PlannerInput input = QuarterCores();
  input.platform.total_milli_cpu = 0;
  input.profile.cold_start_seconds = 0.8;
  input.profile.start_cpu_seconds = 0.5;
  input.platform.quota_while_starting = true;
  EXPECT_NEAR(Predicted(input).predicted[Term::kColdStart], 0.8 + 3 * 0.5, 1e-9);
}

TEST(ExtendedModel, PodsOfServersStartBesideThoseOfWorkers) {
  PlannerInput input = QuarterCores();
  const PlanCandidate processes = Predicted(input);
  input.platform.pod_start_cpu_seconds = 0.6;
  const PlanCandidate pods = Predicted(input);
  // Four workers and their server, on two cores.
  EXPECT_NEAR(pods.predicted[Term::kColdStart],
              processes.predicted[Term::kColdStart] + 0.6 * (5 / 2.0 - 1), 1e-9);
  input.aggregation.placement = Placement::kWorkers;
  EXPECT_NEAR(Predicted(input).predicted[Term::kColdStart],
              processes.predicted[Term::kColdStart] + 0.6 * (4 / 2.0 - 1), 1e-9);
}

TEST(ExtendedModel, WritingTheModelTakesItsShareOfACore) {
  PlannerInput input = QuarterCores();
  const double before = Predicted(input).predicted.seconds;
  input.profile.finish_cpu_seconds = 0.05;
  EXPECT_NEAR(Predicted(input).predicted.seconds, before + 0.2, 1e-9);
}

TEST(ExtendedModel, ServersOfAFractionOfACoreCanBeTheSlowestPart) {
  PlannerInput input = QuarterCores();
  input.aggregation.server_memory_mib = 1024;
  input.profile.transfer.pull_seconds = 0.05;  // 4 pulls and a push: 0.25 s on a whole core
  input.profile.transfer.push_seconds = 0.05;
  const double iteration = Predicted(input).predicted.IterationSeconds();
  EXPECT_GE(iteration, 0.25 / 0.25);
  // Nothing is merged while the workers compute, stalls included.
  EXPECT_LE(iteration, 0.25 / 0.25 + (0.1 + 2 * 0.05) / 0.25 + 2 * kOfPeriods);
}

TEST(ExtendedModel, CheckpointsAsOftenAsTheIntervalAsks) {
  EXPECT_EQ(CheckpointEvery(0, 1), 0);
  EXPECT_EQ(CheckpointEvery(30, 7), 4);
  EXPECT_EQ(CheckpointEvery(30, 31), 1);
  EXPECT_EQ(CheckpointEvery(30, 0), 1);
  PlannerInput input = Simple();
  input.options.checkpoint_interval_seconds = 1.4;  // iterations of 0.675 s: every second one
  input.profile.checkpoint_seconds = 0.25;
  // Of the four the last is waited for.
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kCheckpoint], 0.25);
  input.profile.checkpoint_cpu_seconds = 0.1;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kCheckpoint], 0.25 + 3 * 0.1);
  input.options.checkpoint_interval_seconds = 0;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kCheckpoint], 0.25);
}

// Of the function that writes it.
TEST(ExtendedModel, ACheckpointBesideIterationsTakesItsShareOfACore) {
  PlannerInput input = QuarterCores();
  input.options.checkpoint_interval_seconds = 1e-9;  // after each iteration
  input.aggregation.server_memory_mib = 1024;
  const auto checkpoints = [&] { return Predicted(input).predicted[Term::kCheckpoint]; };
  input.profile.checkpoint_cpu_seconds = 0.1;
  const double of_quarter = checkpoints();
  input.aggregation.server_memory_mib = 512;
  EXPECT_DOUBLE_EQ(checkpoints(), 2 * of_quarter);
  input.aggregation.server_memory_mib.reset();
  input.aggregation.placement = Placement::kWorkers;
  EXPECT_DOUBLE_EQ(checkpoints(), of_quarter);
}

TEST(ExtendedModel, SlicesEndBeforeTheFunctionTimeout) {
  PlannerInput input = Simple();
  // An iteration takes 0.675 s, and stopping 4.5 of them.
  input.platform.function_timeout_seconds = 2 + 1 + 4.5 * 0.675;
  input.profile.slice_overhead_seconds = 1;
  // 5.4 s of work in slices of 2 s: three, two of which are followed by another.
  const Prediction predicted = Predicted(input).predicted;
  EXPECT_DOUBLE_EQ(predicted[Term::kSliceOverhead], 2);
  EXPECT_DOUBLE_EQ(predicted.seconds, 7.4);
  input.platform.function_timeout_seconds = 0.6 + 1 + 4.5 * 0.675;  // no iteration fits
  EXPECT_FALSE(PredictPlan(input, 4, 1024).ok());
  const PlanningOutcome outcome = MakePlan(input).value();
  EXPECT_EQ(outcome.certificate.binding, std::vector<Limit>{Limit::kFunctionTimeout});
}

TEST(ExtendedModel, ChargesWorkersServersSidecarsAndRequests) {
  PlannerInput input = Simple();
  input.aggregation.layers = {1, 2, 4};
  input.aggregation.server_memory_mib = 512;
  const double seconds = Predicted(input).predicted.seconds;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted.cost, (4 * 1.0 + 3 * 0.5) * seconds);
  input.platform.sidecar_memory_mib = 256;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted.cost, (4 * 1.25 + 3 * 0.75) * seconds);
  input.platform.sidecar_memory_mib = 0;
  input.platform.prices = {.gib_second = 0, .put_request = 1};
  // 4 + 2 + 1 objects an iteration, and 8 iterations.
  const Bill beside = SliceRequests(Predicted(input).aggregation, {.kept_checkpoints = 2});
  EXPECT_DOUBLE_EQ(Predicted(input).predicted.cost, 8 * 7 + beside.put_requests);
  input.platform.prices = {.gib_second = 0, .get_request = 1};
  EXPECT_DOUBLE_EQ(Predicted(input).predicted.cost, 8 * (4 + 2 + 4) + beside.get_requests);
  // Of these ten, the 4 workers' 4 weights come after the exchange.
  input.profile.miss = {.seconds = 0.1, .cpu_seconds = 0};
  const PlanCandidate asking = Predicted(input);
  const double exchange = asking.predicted[Term::kCommunication];
  const double iteration = exchange + asking.predicted[Term::kCompute];
  EXPECT_DOUBLE_EQ(asking.predicted.cost, asking.bill.get_requests);
  EXPECT_NEAR(asking.predicted.cost - 8 * (4 + 2 + 4) - beside.get_requests,
              8 * (4 * ExpectedMisses(exchange, 0.05 * exchange, 0.1) +
                   6 * ExpectedMisses(iteration, 0.05 * iteration, 0.1)),
              1e-9);
  input.profile.miss = {};
  input.platform.prices = {.gib_second = 0, .invocation = 1};
  EXPECT_DOUBLE_EQ(Predicted(input).predicted.cost, 7);
  input.platform.prices = {.gib_second = 0, .vcpu_second = 1};
  input.platform.milli_cpu_per_gib = 500;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted.cost,
                   (4 * 0.5 + 3 * 0.25) * Predicted(input).predicted.seconds);
}

TEST(ExtendedModel, ExchangeIsThePipelinedFormula) {
  PlannerInput input = Simple();
  input.aggregation.layers = {1, 4};
  input.aggregation.shards = 1;
  input.platform.store_request_seconds = 0.25;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kCommunication], 4 * 0.25);
  // A server on half a core merges at half the rate; it merges 4 shards and updates 1.
  input.profile.merge_bytes_per_second = 65536 + 128;
  input.platform.milli_cpu_per_gib = 1000;
  input.aggregation.server_memory_mib = 512;
  const ExtendedModel model(input);
  const WorkerTerms workers = model.Workers(4);
  AggregationPlan plan;
  plan.layers = {1, 4};
  EXPECT_DOUBLE_EQ(model.ExchangeSeconds(workers, 1024, model.Option(plan), 0.1), 1 + 5 / 0.5);
}

TEST(ExtendedModel, WhatThePlatformDoesNotSayOfItsStoreTheProfileSaw) {
  PlannerInput said = Simple();
  said.platform.store_request_seconds = 0.25;
  said.platform.store_bytes_per_second = 1e6;
  PlannerInput seen = Simple();
  seen.profile.store_request_seconds = 0.25;
  seen.profile.store_bytes_per_second = 1e6;
  EXPECT_EQ(Predicted(seen).predicted[Term::kCommunication],
            Predicted(said).predicted[Term::kCommunication]);
  EXPECT_EQ(Predicted(seen).predicted[Term::kLoad], Predicted(said).predicted[Term::kLoad]);
  said.profile.store_request_seconds = 9;
  said.profile.store_bytes_per_second = 1;
  EXPECT_EQ(Predicted(said).predicted.seconds, Predicted(seen).predicted.seconds);
}

TEST(ExtendedModel, WorkersShareWhatTheStoreGivesAsManyStreams) {
  PlannerInput input = Simple();  // 4 workers read 1,000 bytes
  input.profile.store_bytes_per_second = 1000;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kLoad], 1);
  input.profile.store_streams = {{1, 1000}, {2, 2000}, {6, 4000}};
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kLoad], 1000.0 / 3000);
  input.objective.fixed->functions = 10;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kLoad], 1000.0 / 4000) << "no more than seen";
  // One stream was measured, which says less than several; who states it knows more.
  input.platform.store_bytes_per_second = {500, Origin::kMeasured};
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kLoad], 1000.0 / 4000);
  input.platform.store_bytes_per_second = 500;
  EXPECT_DOUBLE_EQ(Predicted(input).predicted[Term::kLoad], 1000.0 / 500);
}

// What a function measures of the store has them in it.
TEST(ExtendedModel, QuestionsInVainCountWhereTheStoresRequestTimeIsStated) {
  const auto seconds = [](Origin origin, PollCost miss) {
    PlannerInput input = Simple();
    input.platform.milli_cpu_per_gib = 200;
    input.aggregation.server_memory_mib = 512;
    input.profile.transfer.pull_seconds = 0.5;  // of a tenth of a core: it is waited for
    input.platform.store_request_seconds = OptionalQuantity(0.01, origin);
    input.profile.miss = miss;
    return Predicted(input).predicted.seconds;
  };
  const PollCost miss = {.seconds = 0.001, .cpu_seconds = 0.01};
  EXPECT_GT(seconds(Origin::kGiven, miss), seconds(Origin::kGiven, {}));
  EXPECT_EQ(seconds(Origin::kMeasured, miss), seconds(Origin::kMeasured, {}));
}

TEST(ExtendedModel, TheSlowestHandOverIsOfAllWorkersAndShards) {
  const auto seconds = [](int shards, std::vector<int> layers) {
    PlannerInput input = Simple();
    input.profile.store_deviation_seconds = 0.1;
    input.profile.model_bytes *= shards;
    input.aggregation.shards = shards;
    input.aggregation.spread = 1;
    input.aggregation.layers = std::move(layers);
    const double with = Predicted(input).predicted[Term::kCommunication];
    input.profile.store_deviation_seconds = 0;
    return with - Predicted(input).predicted[Term::kCommunication];
  };
  EXPECT_NEAR(seconds(1, {1, 4}), 0.1 * std::sqrt(2) * ExpectedLargest(4), 1e-9);
  EXPECT_NEAR(seconds(2, {1, 4}), 0.1 * std::sqrt(2) * ExpectedLargest(8), 1e-9);
  EXPECT_NEAR(seconds(1, {1, 2, 4}), 0.1 * std::sqrt(3) * ExpectedLargest(4), 1e-9);
}

TEST(ExtendedModel, TheQuotaCountsServersAsWell) {
  PlannerInput input = Simple();
  input.platform.milli_cpu_per_gib = 1000;
  input.aggregation.server_memory_mib = 512;
  input.platform.total_milli_cpu = 4500;
  EXPECT_TRUE(MakePlan(input)->feasible);
  input.platform.total_milli_cpu = 4499;
  EXPECT_EQ(MakePlan(input)->certificate.binding, std::vector<Limit>{Limit::kQuota});
  input.platform.total_milli_cpu = 0;
  input.platform.total_memory_mib = 4 * 1024 + 512;
  EXPECT_TRUE(MakePlan(input)->feasible);
  input.platform.total_memory_mib = 4 * 1024 + 511;
  EXPECT_EQ(MakePlan(input)->certificate.binding, std::vector<Limit>{Limit::kQuota});
}

TEST(ExtendedModel, PlansAreComplete) {
  PlannerInput input = Simple();
  input.objective = Objective{};
  input.objective.deadline_seconds = 1000;
  input.platform.milli_cpu_per_gib = 2500;
  input.platform.max_functions = 40;
  input.options.checkpoint_interval_seconds = 30;
  const Plan plan = MakePlan(input)->plan;
  EXPECT_TRUE(plan.Validate().ok());
  EXPECT_GE(plan.virtual_partitions, 64);
  EXPECT_LT(plan.virtual_partitions - plan.functions, 64);
  EXPECT_EQ(plan.parameters, 16384);
  EXPECT_EQ(plan.iterations_per_epoch, 4);
  EXPECT_EQ(plan.iterations, 8);
  EXPECT_GE(plan.checkpoint_every, 1);
  EXPECT_EQ(plan.threads, std::max(1, plan.memory_mib * 2500 / 1024 / 1000));
}

TEST(PlannerInput, SaysWhatIsWrong) {
  const auto message = [](auto change) {
    PlannerInput input = Simple();
    change(&input);
    const auto outcome = MakePlan(input);
    return outcome.ok() ? std::string("accepted") : std::string(outcome.status().message());
  };
  const auto mentions = [&](auto change, const char* text) {
    const std::string said = message(change);
    EXPECT_NE(said.find(text), std::string::npos) << said;
  };
  mentions([](auto* in) { in->profile.training_samples = 0; }, "profile.trainingSamples");
  mentions([](auto* in) { in->profile.model_bytes = -1; }, "profile.modelBytes");
  mentions([](auto* in) { in->profile.merge_bytes_per_second = -1; }, "mergeBytesPerSecond");
  mentions([](auto* in) { in->profile.training_rate.table = {{2, 1}, {1, 1}}; }, "sort the table");
  mentions([](auto* in) { in->platform.store_request_seconds = -1; },
           "platform.store.requestSeconds is -1, and must be seconds from 0");
  mentions([](auto* in) { in->profile.cold_start_seconds = std::nan(""); },
           "profile.coldStartSeconds is nan, and must be");
  mentions([](auto* in) { in->platform.function_store_intercept = -1; },
           "platform.function.storeBytesPerSecond is -1 bytes a second at best");
  mentions([](auto* in) { in->limits.epochs = 0; }, "training.epochs");
  mentions([](auto* in) { in->limits.global_batch_size = 0; }, "globalBatchSize");
  mentions([](auto* in) { in->limits.max_global_batch_size = 3; }, "exactly one");
  mentions([](auto* in) { in->limits.global_batch_size.reset(); }, "exactly one");
  mentions([](auto* in) { in->objective.budget = 1; }, "objective.fixed goes with no other");
  mentions([](auto* in) { in->objective.best_effort = true; },
           "objective.fixed goes with no other");
  mentions([](auto* in) { in->objective = Objective{}; }, "objective needs deadlineSeconds");
  const auto objective = [&](auto change, const char* text) {
    mentions(
        [&](auto* in) {
          in->objective = Objective{};
          change(&in->objective);
        },
        text);
  };
  objective([](auto* o) { o->performance_cost_ratio = true; }, "needs its weight, or a deadline");
  objective(
      [](auto* o) {
        o->performance_cost_ratio = true;
        o->cost_weight = 1.5;
      },
      "weight must be from 0 to 1");
  objective(
      [](auto* o) {
        o->budget = 1;
        o->best_effort = true;
      },
      "bestEffort needs deadlineSeconds or finishBy");
  objective([](auto* o) { o->finish_by = WallTime{}; }, "finishBy is no deadline");
  objective(
      [](auto* o) {
        o->deadline_seconds = 1;
        o->budget = std::nan("");
      },
      "objective.budget is nan, and must be a number above 0");
  mentions([](auto* in) { in->platform.prices.node_hour.price = -1; }, "nodeHour.price");
  mentions([](auto* in) { in->objective.fixed->functions = 31; }, "no number of functions");
  mentions([](auto* in) { in->objective.fixed->memory_mib = 64; }, "objective.fixed.memory");
  mentions([](auto* in) { in->aggregation.shards = 2; }, "aggregation.shards");
  mentions([](auto* in) { in->aggregation.layers = {2, 4}; }, "aggregation.layers");
  mentions([](auto* in) { in->aggregation.spread = 3; }, "give aggregation.shards as well");
  mentions(
      [](auto* in) {
        in->aggregation.placement = Placement::kWorkers;
        in->aggregation.server_memory_mib = 256;
      },
      "aggregation.serverMemory");
  mentions([](auto* in) { in->options.search = SearchMethod::kAlgorithm1; }, "lambdadnn");
  mentions([](auto* in) { in->options.model = PredictionModel::kLambdaDnn; }, "network");
  mentions([](auto* in) { in->platform.memory.step_mib = 0; }, "platform.memory.step");
  mentions(
      [](auto* in) {
        in->objective = Objective{};
        in->objective.budget = 1;
        in->limits.min_memory_mib = 2000;
      },
      "none of the platform's (128 to 1024 MiB, 128 MiB apart)");
  const auto free = [](auto* in) {
    in->objective = Objective{};
    in->objective.budget = 1;
  };
  mentions(
      [&](auto* in) {
        free(in);
        in->limits.min_memory_mib = 300;
        in->limits.max_memory_mib = 310;
      },
      "lies within functions.memory");
  mentions(
      [&](auto* in) {
        free(in);
        in->limits.memory_step_mib = 1;
      },
      "give a multiple");
  mentions(
      [&](auto* in) {
        free(in);
        in->platform.memory = {128, std::numeric_limits<int>::max(), 1};
      },
      "raise platform.memory.step");
  mentions(
      [&](auto* in) {
        free(in);
        in->platform.memory = {128, 10'240, 1};
        in->platform.max_functions = std::numeric_limits<int>::max();
        in->profile.training_samples = 100'000;
        in->limits.global_batch_size = 50'000;  // at most so many functions
      },
      "lower functions.max");
}

}  // namespace
}  // namespace lambdadnn
