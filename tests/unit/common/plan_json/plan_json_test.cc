// SPDX-License-Identifier: Apache-2.0
#include "common/plan_json/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

Plan FullPlan() {
  Plan plan;
  plan.revision = 3;
  plan.first_iteration = 120;
  plan.functions = 8;
  plan.memory_mib = 1728;
  plan.server_memory_mib = 256;
  plan.local_batch_size = 15;
  plan.global_batch_size = 120;
  plan.iterations = 300;
  plan.iterations_per_epoch = 100;
  plan.aggregation = {TransportKind::kDirect, Placement::kWorkers, 4, {1, 2, 8}, 2};
  plan.threads = 2;
  plan.isa = "avx2";
  plan.libtorch = "1.13.1, built in";
  plan.virtual_partitions = 64;
  plan.checkpoint_every = 40;
  plan.parameters = (1 << 20) + 5;
  plan.buffers = 5;
  plan.block_elements = 4096;
  plan.predicted = {0.1, 1.0 / 3, 300, 1.5, 0.2, 0.30000000000000004, 1e-9, 2.5, 7, 0.05};
  plan.binding = {"deadline", "memory"};
  return plan;
}

TEST(PlanJson, RoundTripsEveryFieldThroughText) {
  const Plan plan = FullPlan();
  const auto parsed = ParseJson(PlanToJson(plan).dump());
  ASSERT_TRUE(parsed.ok());
  const auto decoded = PlanFromJson(*parsed);
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(*decoded, plan);
}

TEST(PlanJson, WritesEveryFieldOfAFullPlanDifferentlyFromADefaultOne) {
  const Json full = PlanToJson(FullPlan()).flatten();
  const Json plain = PlanToJson(Plan{}).flatten();
  for (const auto& [path, value] : plain.items()) {
    if (path == "/virtualPartitions" || path.starts_with("/binding")) continue;
    if (path.starts_with("/aggregation/layers")) continue;
    EXPECT_NE(full.at(path), value) << path;
  }
}

TEST(PlanJson, UnknownFieldOfAPlanToExecuteIsNamedWithItsNearestOne) {
  Json json = ExecutionPlanToJson(FullPlan());
  json["aggregation"]["shard"] = 2;
  std::vector<FieldError> errors;
  DecodeExecutionPlan(json, "plan", &errors);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors.front().path, "plan.aggregation.shard");
  EXPECT_THAT(errors.front().message, HasSubstr("did you mean shards?"));
}

TEST(PlanJson, APlanToExecuteHasNoPrediction) {
  const Json json = ExecutionPlanToJson(FullPlan());
  EXPECT_FALSE(json.contains("predicted"));
  std::vector<FieldError> errors;
  EXPECT_EQ(DecodeExecutionPlan(json, "plan", &errors), static_cast<ExecutionPlan>(FullPlan()));
  EXPECT_TRUE(errors.empty());
  DecodeExecutionPlan(PlanToJson(FullPlan()), "plan", &errors);
  EXPECT_EQ(errors.size(), 2u) << "predicted and binding";
}

TEST(PlanJson, WhatANewerOperatorAddsToAPlanIsIgnored) {
  Json json = PlanToJson(FullPlan());
  json["flavour"] = 1;
  json["aggregation"]["flavour"] = {{"of", "something"}};
  json["predicted"]["mood"] = "good";
  const auto decoded = PlanFromJson(json);
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(*decoded, FullPlan());
}

TEST(PlanJson, MemoryIsAQuantityAndDecimalsAreText) {
  Plan plan = FullPlan();
  plan.memory_mib = 1728;
  plan.server_memory_mib = 0;
  plan.predicted.seconds = 0.1 + 0.2;
  Json json = PlanToJson(plan);
  EXPECT_EQ(json["memory"], "1728Mi");
  EXPECT_FALSE(json.contains("serverMemory"));
  EXPECT_EQ(json["predicted"]["seconds"], "0.30000000000000004");
  EXPECT_TRUE(json["predicted"]["iterations"].is_number_integer());
  EXPECT_EQ(*PlanFromJson(json), plan);
  json["memory"] = "2Gi";
  EXPECT_EQ(PlanFromJson(json)->memory_mib, 2048);
  for (const Json& wrong : {Json(1728), Json("1.5Mi"), Json("much"), Json("-1Mi")}) {
    json["memory"] = wrong;
    EXPECT_THAT(PlanFromJson(json).status().message(), HasSubstr("plan.memory")) << wrong;
  }
}

TEST(PlanJson, BlocksOfAnOlderPlanAreThoseOfBefore) {
  Json json = PlanToJson(FullPlan());
  json.erase("blockElements");
  EXPECT_EQ(PlanFromJson(json)->block_elements, kDefaultBlockElements);
  for (const int64_t size : {-16, 0, 8, 24, 1 << 25}) {
    json["blockElements"] = size;
    EXPECT_THAT(PlanFromJson(json).status().message(), HasSubstr("blockElements")) << size;
  }
  json["blockElements"] = 16;
  EXPECT_TRUE(PlanFromJson(json).ok());
}

TEST(PlanJson, WrongEnumAndTypesAreAllReportedAtOnce) {
  Json json = PlanToJson(FullPlan());
  json["aggregation"]["transport"] = "Pigeon";
  json["functions"] = "eight";
  json["predicted"] = 7;
  const auto decoded = PlanFromJson(json);
  ASSERT_FALSE(decoded.ok());
  EXPECT_THAT(decoded.status().message(), HasSubstr("plan.aggregation.transport"));
  EXPECT_THAT(decoded.status().message(), HasSubstr("plan.functions"));
  EXPECT_THAT(decoded.status().message(), HasSubstr("plan.predicted"));
}

TEST(PlanJson, APlanThatBreaksItsRulesIsRefused) {
  Json json = PlanToJson(FullPlan());
  json["aggregation"]["layers"] = {1, 2, 7};
  EXPECT_EQ(PlanFromJson(json).status().code(), StatusCode::kInvalidArgument);
  json["aggregation"]["layers"] = {1, 2, 8};
  for (const int64_t buffers : {int64_t{-1}, int64_t{4}, (int64_t{1} << 20) + 5}) {
    json["buffers"] = buffers;
    EXPECT_THAT(PlanFromJson(json).status().message(), HasSubstr("plan.buffers")) << buffers;
  }
  json["aggregation"]["layers"] = Json::array();
  EXPECT_EQ(PlanFromJson(json).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(PlanFromJson(Json()).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lambdadnn
