// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster_view/openfaas_timeouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/cluster_view/cluster_limits.h"
#include "operator/cluster_view/openfaas_edition.h"
#include "tests/support/hostile_values.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Json Container(const std::string& name, const Json& variables, const std::string& image = "x/y:1") {
  Json env = Json::array();
  for (const auto& [variable, value] : variables.items()) {
    env.push_back({{"name", variable}, {"value", value}});
  }
  return {{"name", name}, {"image", image}, {"env", std::move(env)}};
}

Json DeploymentOf(Json containers) {
  return {{"spec", {{"template", {{"spec", {{"containers", std::move(containers)}}}}}}}};
}

TEST(OpenFaasTimeouts, TheShortestOfGatewayAndProviderIsTaken) {
  OpenFaasTimeout shortest;
  TakeTimeouts(DeploymentOf(Json::array({Container("gateway", {{"read_timeout", "1m5s"},
                                                               {"upstream_timeout", "60s"},
                                                               {"scale_from_zero", "1s"}}),
                                         Container("nats", {{"write_timeout", "1s"}})})),
               &shortest);
  EXPECT_EQ(shortest.seconds, 60);
  EXPECT_EQ(shortest.source, "upstream_timeout of OpenFaaS' container gateway");
  TakeTimeouts(DeploymentOf(Json::array({Container("faas-netes", {{"write_timeout", "10"}})})),
               &shortest);
  EXPECT_EQ(shortest.seconds, 10);
  EXPECT_EQ(shortest.source, "write_timeout of OpenFaaS' container faas-netes");
}

TEST(OpenFaasTimeouts, WhatMakesNoSenseIsNotKnown) {
  OpenFaasTimeout shortest;
  TakeTimeouts(DeploymentOf(Json::array(
                   {Container("gateway", {{"read_timeout", "soon"}, {"write_timeout", "0s"}})})),
               &shortest);
  EXPECT_EQ(shortest.seconds, 0);
  const Json deployment = DeploymentOf(
      Json::array({Container("gateway", {{"read_timeout", "5s"}}, "openfaas/faas-netes:0.18.1")}));
  ForEachHostileField(deployment, Json::json_pointer("/spec"), [](const Json& changed) {
    OpenFaasTimeout ignored;
    TakeTimeouts(changed, &ignored);
    (void)EditionOf(changed);
  });
}

TEST(OpenFaasTimeouts, OneThatARequestDoesNotFitInIsAnObstacleWithARemedy) {
  EXPECT_FALSE(IsTooShort(0));
  EXPECT_FALSE(IsTooShort(kLeastOpenFaasTimeoutSeconds));
  ClusterLimits limits;
  limits.request_timeout_seconds = 60;
  limits.request_timeout_source = "upstream_timeout";
  EXPECT_THAT(WithinLimits(Platform(), limits).obstacle, IsEmpty());
  limits.request_timeout_seconds = 1;
  const NarrowedPlatform narrowed = WithinLimits(Platform(), limits);
  EXPECT_EQ(narrowed.obstacle,
            "upstream_timeout is 1 s, and a request to a function takes up to 2 s");
  EXPECT_THAT(narrowed.remedy, HasSubstr("set it to 5 s or more"));
}

TEST(OpenFaasEditionByImage, IsTheCommunityEditionsByItsRegistry) {
  struct Row {
    const char* image;
    int functions;  // -1 = not known
  };
  for (const Row& row :
       {Row{"ghcr.io/openfaas/faas-netes:0.18.17", 15}, Row{"openfaas/faas-netes:0.16.2", 0},
        Row{"ghcr.io/openfaasltd/faas-netes:0.5.80", -1}, Row{"my-openfaas/faas-netes:0.18.17", -1},
        Row{"ghcr.io/openfaas/gateway:0.27.12", -1}}) {
    const auto edition =
        EditionOf(DeploymentOf(Json::array({Container("faas-netes", Json::object(), row.image)})));
    ASSERT_EQ(edition.has_value(), row.functions >= 0) << row.image;
    EXPECT_EQ(edition.value_or(OpenFaasEdition{.max_functions = -1}).max_functions, row.functions)
        << row.image;
  }
}

}  // namespace
}  // namespace lambdadnn
