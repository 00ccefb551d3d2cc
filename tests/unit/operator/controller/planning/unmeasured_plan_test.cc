// SPDX-License-Identifier: Apache-2.0
// Where a job may train before its model is measured, and under which plan: one row a case.
#include "operator/controller/planning/unmeasured_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace lambdadnn {
namespace {

using testing::HasSubstr;

struct Inputs {
  JobSpec spec;
  Platform platform;
  WorkloadFacts facts = {12000, 2000, 788, 100000};

  Inputs() {
    spec.training.epochs = 3;
    spec.training.global_batch_size = 110;
    spec.objective.deadline_seconds = 90;
    platform.memory = {128, 1000, 64};
    platform.milli_cpu_per_gib = 1000;
    platform.total_milli_cpu = 4000;
    platform.block_elements = 4096;
  }
};

TEST(UnmeasuredPlan, IsOneFunctionOfTheLargestSizeWithNothingPredicted) {
  const Inputs in;
  const Result<Plan> plan = MakeUnmeasuredPlan(in.spec, in.platform, in.facts);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(plan->Validate().ok());
  EXPECT_EQ(plan->revision, 1);
  EXPECT_EQ(plan->functions, 1);
  EXPECT_EQ(plan->memory_mib, 960);  // the largest of the grid
  EXPECT_EQ(plan->aggregation.placement, Placement::kWorkers);
  EXPECT_EQ(plan->global_batch_size, 110);
  EXPECT_EQ(plan->local_batch_size, 110);
  EXPECT_EQ(plan->iterations_per_epoch, 110);  // the last batch is short
  EXPECT_EQ(plan->iterations, 330);
  EXPECT_EQ(plan->parameters, 100000);
  EXPECT_EQ(plan->buffers, 0);
  EXPECT_EQ(plan->block_elements, 4096);
  EXPECT_EQ(plan->checkpoint_every, kUnmeasuredCheckpointEvery);
  EXPECT_EQ(plan->predicted, Prediction{});
}

TEST(UnmeasuredPlan, OfMoreFunctionsIsAsLargeTogether) {
  Inputs in;
  in.spec.functions.min = 3;
  const Result<Plan> plan = MakeUnmeasuredPlan(in.spec, in.platform, in.facts);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_TRUE(plan->Validate().ok());
  EXPECT_EQ(plan->functions, 3);
  EXPECT_EQ(plan->memory_mib, 320);  // of 1,000 MiB a third, on the grid
  EXPECT_EQ(plan->local_batch_size, 37);
  EXPECT_EQ(plan->iterations_per_epoch, 110);
  EXPECT_EQ(plan->aggregation,
            (AggregationPlan{TransportKind::kDirect, Placement::kWorkers, 3, {1, 3}, 3}));
}

TEST(UnmeasuredPlan, HasNoMoreShardsThanBlocks) {
  Inputs in;
  in.spec.functions.min = 3;
  in.facts.parameters = 4097;
  const Result<Plan> plan = MakeUnmeasuredPlan(in.spec, in.platform, in.facts);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(plan->aggregation.shards, 2);
}

TEST(UnmeasuredPlan, ExchangesThroughTheStoreWhereFunctionsDoNotConnect) {
  Inputs in;
  in.spec.functions.min = 2;
  in.spec.aggregation.transport = TransportKind::kObjectStore;
  EXPECT_EQ(MakeUnmeasuredPlan(in.spec, in.platform, in.facts)->aggregation.transport,
            TransportKind::kObjectStore);
  in.spec.aggregation.transport.reset();
  in.spec.addressing = Addressing::kService;
  EXPECT_EQ(MakeUnmeasuredPlan(in.spec, in.platform, in.facts)->aggregation.transport,
            TransportKind::kObjectStore);
}

TEST(UnmeasuredPlan, TakesThePlaceOfFunctionsThatFill) {
  Inputs in;
  const int alone = MakeProfilePlan(in.spec, in.platform).functions;
  EXPECT_EQ(ProfilePlanBeside(in.spec, in.platform).functions, alone - 1);
  in.spec.functions.min = 2;  // of half the size
  EXPECT_EQ(ProfilePlanBeside(in.spec, in.platform).functions, alone - 1);
  in.spec.functions.memory_min_mib = 640;
  EXPECT_EQ(ProfilePlanBeside(in.spec, in.platform).functions, alone - 2);
}

struct Row {
  const char* name;
  std::function<void(Inputs&)> change;
  const char* obstacle;  // "" = it may
};

const Row kRows[] = {
    {"as it is", [](Inputs&) {}, ""},
    {"a budget", [](Inputs& in) { in.spec.objective.budget = 1; }, ""},
    {"transport alone",
     [](Inputs& in) { in.spec.aggregation.transport = TransportKind::kObjectStore; }, ""},
    {"workers that serve", [](Inputs& in) { in.spec.aggregation.placement = Placement::kWorkers; },
     ""},
    {"no limits of the platform",
     [](Inputs& in) {
       in.platform.total_milli_cpu = 0;
       in.platform.total_memory_mib = 0;
     },
     ""},
    {"resumes", [](Inputs& in) { in.spec.checkpoint.resume_from = "s3://b/job"; }, "resumeFrom"},
    {"fixed", [](Inputs& in) { in.spec.objective.fixed = Objective::Fixed{1, 512}; },
     "spec.objective.fixed"},
    {"batch of the plan", [](Inputs& in) { in.spec.training.global_batch_size.reset(); },
     "globalBatchSize is not set"},
    {"three functions", [](Inputs& in) { in.spec.functions.min = 3; }, ""},
    {"functions that fill the machine",
     [](Inputs& in) {
       in.spec.functions.min = 4;
       in.spec.functions.memory_min_mib = 960;
     },
     "no room for functions that train"},
    {"GPU", [](Inputs& in) { in.spec.functions.gpu = 1; }, "GPUs"},
    {"dedicated servers", [](Inputs& in) { in.spec.aggregation.placement = Placement::kDedicated; },
     "spec.aggregation"},
    {"layers", [](Inputs& in) { in.spec.aggregation.layers = {1, 2}; }, "spec.aggregation"},
    {"shards", [](Inputs& in) { in.spec.aggregation.shards = 2; }, "spec.aggregation"},
    {"spread", [](Inputs& in) { in.spec.aggregation.spread = 1; }, "spec.aggregation"},
    {"memory of servers", [](Inputs& in) { in.spec.aggregation.server_memory_mib = 256; },
     "spec.aggregation"},
    {"unknown data", [](Inputs& in) { in.facts = {}; }, "once a function has read them"},
    {"unknown model", [](Inputs& in) { in.facts.parameters = 0; }, "once a function has read them"},
    {"a batch as large as the data", [](Inputs& in) { in.facts.training_samples = 110; }, ""},
    {"a batch larger than the data", [](Inputs& in) { in.facts.training_samples = 109; },
     "larger than the data set"},
    {"one function at most", [](Inputs& in) { in.spec.functions.max = 1; },
     "no room for functions that train"},
    {"a machine for one", [](Inputs& in) { in.platform.total_milli_cpu = 1000; },
     "no room for functions that train"},
    {"a machine for two", [](Inputs& in) { in.platform.total_milli_cpu = 2000; }, ""},
    {"a machine for two without their sidecars",
     [](Inputs& in) {
       in.platform.total_milli_cpu = 2000;
       in.platform.total_memory_mib = 2000;
       in.platform.sidecar_memory_mib = 50;
     },
     "no room for functions that train"},
    {"a node for each",
     [](Inputs& in) {
       in.platform.total_milli_cpu = 0;
       in.platform.nodes = {{1000, 1000, 10}, {1000, 1000, 10}};
     },
     ""},
    {"two nodes with half the room",
     [](Inputs& in) {
       in.platform.total_milli_cpu = 0;
       in.platform.nodes = {{500, 1000, 10}, {1500, 1000, 10}};
     },
     "no room for functions that train"},
    {"no size", [](Inputs& in) { in.spec.functions.memory_min_mib = 961; }, "no size of functions"},
    {"data that fills a function", [](Inputs& in) { in.facts.sample_bytes = 40000; },
     "of each function, which has 960"},
    {"a model that fills a function", [](Inputs& in) { in.facts.parameters = 30'000'000; },
     "of each function, which has 960"},
};

TEST(UnmeasuredPlan, ExistsWhereTheJobAndTheMachineLetOneFunctionTrainBesideThoseThatMeasure) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Inputs in;
    row.change(in);
    const Result<Plan> plan = MakeUnmeasuredPlan(in.spec, in.platform, in.facts);
    EXPECT_EQ(plan.ok(), *row.obstacle == '\0') << plan.status().ToString();
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(row.obstacle));
  }
}

}  // namespace
}  // namespace lambdadnn
