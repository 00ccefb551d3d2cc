// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/function_memory.h"

#include <gtest/gtest.h>

#include <utility>

#include "operator/planner/extended_model.h"
#include "operator/planner/planner.h"
#include "operator/planner/wording.h"
#include "tests/unit/operator/planner/simple_input.h"

namespace lambdadnn {
namespace {

TEST(FunctionMemory, AWorkerNeedsMemoryForModelAndBatch) {
  PlannerInput input = Simple();
  input.profile.worker_base_memory_mib = 200;
  input.profile.worker_bytes_per_sample = 10 << 20;
  input.objective.fixed = Objective::Fixed{4, 256};
  // 200 + 3 x 0.0625 + 8 x 10 MiB
  EXPECT_NEAR(ExtendedModel(input).Workers(4).memory.whole_mib(), 280.1875, 1e-6);
  PlannerInput others = input;
  others.profile.worker_least_memory_mib = 300;  // more than the base and a batch
  EXPECT_NEAR(ExtendedModel(others).Workers(4).memory.whole_mib(), 300.1875, 1e-6);
  others.profile.loaded_bytes_per_sample = 4 << 20;
  const double share = static_cast<double>(others.profile.training_samples) / 4;
  EXPECT_NEAR(ExtendedModel(others).Workers(4).memory.whole_mib(), 300.1875 + 4 * share, 1e-6);
  const PlanningOutcome outcome = MakePlan(input).value();
  ASSERT_FALSE(outcome.feasible);
  EXPECT_EQ(outcome.certificate.binding, std::vector<Limit>{Limit::kMemory});
  EXPECT_NE(ReasonOf(outcome.certificate).find("281 MiB"), std::string::npos);
  input.objective.fixed = Objective::Fixed{4, 384};
  EXPECT_TRUE(MakePlan(input)->feasible);
  // Two samples at a time, and their gradient beside the sum.
  input.limits.micro_batch_size = 2;
  EXPECT_NEAR(ExtendedModel(input).Workers(4).memory.whole_mib(), 200 + 4 * 0.0625 + 2 * 10, 0.01);
  input.limits.micro_batch_size = 8;
  EXPECT_NEAR(ExtendedModel(input).Workers(4).memory.whole_mib(), 280.1875, 1e-6) << "all of it";
}

TEST(FunctionMemory, ServersFitTheirShardsAndAShareOfACore) {
  PlannerInput input = Simple();
  const auto server_mib = [&] { return Predicted(input).server_memory_mib; };
  EXPECT_EQ(server_mib(), 128);
  input.platform.milli_cpu_per_gib = 1000;
  EXPECT_EQ(server_mib(), 256);  // 250 milli-CPU
  input.aggregation.spread = 1;
  input.profile.model_bytes = 100 << 20;
  // 12.5 + 4 x 100 (weights, these again as they are handed on and in the checkpoint, sum), and
  // what arrives.
  EXPECT_EQ(server_mib(), 512);
  input.limits.optimizer_state_vectors = 2;
  EXPECT_EQ(server_mib(), 896);
}

TEST(FunctionMemory, AServerHoldsAsMuchAsArrivesAtATime) {
  constexpr int64_t kElements = (25 << 20);  // 100 MiB
  const auto needed = [](int shards, int spread, std::vector<int> layers, int vectors = 0,
                         bool clips = false) {
    TrainingLimits limits;
    limits.optimizer_state_vectors = vectors;
    limits.clip_by_global_norm = clips;
    AggregationPlan plan;
    plan.shards = shards;
    plan.spread = spread;
    plan.layers = std::move(layers);
    return NeededServerMib(plan, kElements, limits);
  };
  EXPECT_DOUBLE_EQ(needed(1, 1, {1, 1}), 12.5 + 300 + 100);  // one worker, one shard
  EXPECT_DOUBLE_EQ(needed(1, 1, {1, 8}), 12.5 + 400 + 2 * 100);
  EXPECT_DOUBLE_EQ(needed(1, 1, {1, 8}, 2), 12.5 + 800 + 2 * 100);
  EXPECT_DOUBLE_EQ(needed(4, 1, {1, 8}), 12.5 + 400 + 2 * 25);
  EXPECT_DOUBLE_EQ(needed(10, 1, {1, 8}), 12.5 + 400 + 6 * 10);
  EXPECT_DOUBLE_EQ(needed(40, 1, {1, 8}), 12.5 + 400 + 8 * 2.5);
  EXPECT_DOUBLE_EQ(needed(4, 4, {1, 8}), 12.5 + 100 + 2 * 25);
  EXPECT_DOUBLE_EQ(needed(40, 40, {1, 2}), 12.5 + 7.5 + 2 * 2.5)
      << "two children are never summed up";
  EXPECT_DOUBLE_EQ(needed(40, 40, {1, 2}, 0, true), 12.5 + 10 + 2 * 2.5);
  EXPECT_DOUBLE_EQ(needed(40, 40, {1, 2, 4}), 12.5 + 10 + 4 * 2.5) << "what a leaf writes is a sum";
}

}  // namespace
}  // namespace lambdadnn
