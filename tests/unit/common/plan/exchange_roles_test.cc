// SPDX-License-Identifier: Apache-2.0
#include "common/plan/exchange_roles.h"

#include <gtest/gtest.h>

#include <set>

#include "common/plan/geometry.h"

namespace lambdadnn {
namespace {

using enum ExchangeKind;

AggregationPlan PlanOf(std::vector<int> layers, int shards, int spread) {
  AggregationPlan plan;
  plan.layers = std::move(layers);
  plan.shards = shards;
  plan.spread = spread;
  return plan;
}

std::vector<AggregationPlan> Plans() {
  return {PlanOf({1, 1}, 1, 1),     PlanOf({1, 4}, 3, 3),        PlanOf({1, 2, 4}, 2, 1),
          PlanOf({1, 2, 7}, 4, 2),  PlanOf({1, 3, 10}, 6, 3),    PlanOf({1, 3, 5, 17}, 4, 4),
          PlanOf({1, 7, 13}, 2, 2), PlanOf({1, 2, 3, 11}, 1, 1), PlanOf({1, 64}, 8, 2)};
}

std::vector<ExchangeRole> RolesOf(const AggregationPlan& plan) {
  std::vector<ExchangeRole> roles;
  for (int layer = 0; layer <= plan.server_layers(); ++layer) {
    for (int index = 0; index < plan.Width(layer); ++index) {
      for (int group = 0; group < (layer == 0 ? 1 : plan.spread); ++group) {
        roles.push_back({layer, index, group});
      }
    }
  }
  return roles;
}

std::vector<ExchangeObject> ObjectsOf(const AggregationPlan& plan) {
  std::vector<ExchangeObject> objects;
  const int root = plan.server_layers();
  for (int shard = 0; shard < plan.shards; ++shard) {
    for (int layer = 0; layer < root; ++layer) {
      for (int index = 0; index < plan.Width(layer); ++index) {
        objects.push_back({kGradient, layer, shard, index});
      }
    }
    objects.push_back({kWeights, root, shard, 0});
    objects.push_back({kNorms, root, shard, 0});
  }
  return objects;
}

TEST(ExchangeRoles, OfOneServerAndOfLayers) {
  const AggregationPlan flat = PlanOf({1, 4}, 3, 3);
  struct Row {
    const AggregationPlan& plan;
    ExchangeObject object;
    ExchangeRole writer;
    std::vector<ExchangeRole> readers;
  };
  const AggregationPlan layered = PlanOf({1, 2, 4}, 4, 2);
  const std::vector<ExchangeRole> workers = {{0, 0, 0}, {0, 1, 0}, {0, 2, 0}, {0, 3, 0}};
  for (const Row& row :
       std::vector<Row>{{flat, {kGradient, 0, 1, 2}, {0, 2, 0}, {{1, 0, 1}}},
                        {flat, {kWeights, 1, 2, 0}, {1, 0, 2}, workers},
                        {flat, {kNorms, 1, 0, 0}, {1, 0, 0}, {{1, 0, 1}, {1, 0, 2}}},
                        {layered, {kGradient, 0, 3, 2}, {0, 2, 0}, {{1, 1, 1}}},
                        {layered, {kGradient, 1, 3, 1}, {1, 1, 1}, {{2, 0, 1}}},
                        {layered, {kWeights, 2, 1, 0}, {2, 0, 0}, workers},
                        {layered, {kNorms, 2, 3, 0}, {2, 0, 1}, {{2, 0, 0}}}}) {
    EXPECT_EQ(WriterOf(row.plan, row.object), row.writer);
    EXPECT_EQ(ReadersOf(row.plan, row.object), row.readers);
  }
}

TEST(ExchangeRoles, ThoseMeetWhoWriteForEachOther) {
  for (const AggregationPlan& plan : Plans()) {
    std::set<std::pair<ExchangeRole, ExchangeRole>> meetings;
    for (const ExchangeObject& object : ObjectsOf(plan)) {
      ASSERT_TRUE(IsExchanged(plan, object));
      const ExchangeRole writer = WriterOf(plan, object);
      ASSERT_TRUE(IsRoleOf(plan, writer));
      for (const ExchangeRole& reader : ReadersOf(plan, object)) {
        ASSERT_TRUE(IsRoleOf(plan, reader));
        meetings.emplace(writer, reader);
        meetings.emplace(reader, writer);
      }
    }
    for (const ExchangeRole& role : RolesOf(plan)) {
      std::vector<ExchangeRole> expected;
      for (const auto& [a, b] : meetings) {
        if (a == role) expected.push_back(b);
      }
      EXPECT_EQ(MeetsWith(plan, role), expected) << role.layer << " " << role.index;
      for (const ExchangeRole& other : expected) {
        EXPECT_NE(OpensConnection(role, other), OpensConnection(other, role));
      }
    }
  }
}

// The pairs of functions of which one writes what the other reads.
std::set<std::pair<ExchangeRole, ExchangeRole>> FunctionPairs(const AggregationPlan& plan) {
  std::set<std::pair<ExchangeRole, ExchangeRole>> pairs;
  for (const ExchangeObject& object : ObjectsOf(plan)) {
    const ExchangeRole writer = FunctionOf(plan, WriterOf(plan, object));
    std::set<ExchangeRole> others;
    for (const ExchangeRole& reader : ReadersOf(plan, object)) {
      const ExchangeRole function = FunctionOf(plan, reader);
      if (function == writer) continue;
      others.insert(function);
      pairs.emplace(writer, function);
      pairs.emplace(function, writer);
    }
    EXPECT_EQ(FunctionsReading(plan, object),
              std::vector<ExchangeRole>(others.begin(), others.end()));
  }
  return pairs;
}

TEST(ExchangeRoles, FunctionsMeetWhoseRolesDo) {
  for (AggregationPlan plan : Plans()) {
    for (const Placement placement : {Placement::kDedicated, Placement::kWorkers}) {
      plan.placement = placement;
      const auto pairs = FunctionPairs(plan);
      for (const ExchangeRole& role : RolesOf(plan)) {
        if (FunctionOf(plan, role) != role) continue;
        std::vector<ExchangeRole> expected;
        for (const auto& [a, b] : pairs) {
          if (a == role) expected.push_back(b);
        }
        EXPECT_EQ(FunctionsMeeting(plan, role), expected) << role.layer << " " << role.index;
      }
    }
  }
}

TEST(ExchangeRoles, WhereWorkersServeEachIsAFunction) {
  AggregationPlan plan = PlanOf({1, 3}, 3, 3);
  EXPECT_EQ(FunctionOf(plan, {1, 0, 2}), (ExchangeRole{1, 0, 2}));
  plan.placement = Placement::kWorkers;
  // One root on each worker.
  EXPECT_EQ(FunctionOf(plan, {1, 0, 2}), (ExchangeRole{0, HostOf(plan, {1, 0, 2}), 0}));
  EXPECT_EQ(FunctionOf(plan, {0, 1, 0}), (ExchangeRole{0, 1, 0}));
  const ExchangeObject weights = {kWeights, 1, 2, 0};
  EXPECT_EQ(FunctionsReading(plan, weights).size(), 2u);
  EXPECT_EQ(FunctionsMeeting(plan, {0, 1, 0}), (std::vector<ExchangeRole>{{0, 0, 0}, {0, 2, 0}}));
}

TEST(ExchangeRoles, WhatThePlanDoesNotHaveIsToldApart) {
  const AggregationPlan plan = PlanOf({1, 2, 4}, 4, 2);
  for (const ExchangeObject& object :
       {ExchangeObject{kGradient, 2, 0, 0}, ExchangeObject{kGradient, -1, 0, 0},
        ExchangeObject{kGradient, 0, 4, 0}, ExchangeObject{kGradient, 0, -1, 0},
        ExchangeObject{kGradient, 0, 0, 4}, ExchangeObject{kGradient, 1, 0, 2},
        ExchangeObject{kWeights, 1, 0, 0}, ExchangeObject{kWeights, 2, 0, 1},
        ExchangeObject{kNorms, 0, 0, 0}}) {
    EXPECT_FALSE(IsExchanged(plan, object)) << object.layer << " " << object.shard;
  }
  for (const ExchangeRole& role :
       {ExchangeRole{3, 0, 0}, ExchangeRole{0, 4, 0}, ExchangeRole{0, 0, 1}, ExchangeRole{1, 2, 0},
        ExchangeRole{2, 0, 2}, ExchangeRole{-1, 0, 0}}) {
    EXPECT_FALSE(IsRoleOf(plan, role)) << role.layer << " " << role.index;
  }
}

}  // namespace
}  // namespace lambdadnn
