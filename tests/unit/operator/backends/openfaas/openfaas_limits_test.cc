// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/openfaas/openfaas_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/in_memory_api_server.h"
#include "operator/resources/job_children.h"
#include "operator/resources/openfaas_function.h"
#include "tests/support/virtual_runtime.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OpenFaasLimits : public testing::Test {
 protected:
  void Define() {
    ResourceDefinition definition;
    definition.type = DeploymentType();
    server_.Define(std::move(definition));
  }
  void Make(const ObjectName& name, const Json& labels, const Json& containers) {
    ASSERT_TRUE(
        server_
            .Create(DeploymentType(),
                    {{"apiVersion", "apps/v1"},
                     {"kind", "Deployment"},
                     {"metadata", {{"name", name.name}, {"namespace", name.namespace_name}}},
                     {"spec",
                      {{"template",
                        {{"metadata", {{"labels", labels}}},
                         {"spec", {{"containers", containers}}}}}}}})
            .ok());
  }
  // As its chart makes it.
  void Install() {
    Define();
    Make({"openfaas", "gateway"}, {{"app", "gateway"}},
         Json::array({{{"name", "gateway"},
                       {"image", "ghcr.io/openfaas/gateway:0.27.12"},
                       {"env", Json::array({{{"name", "upstream_timeout"}, {"value", "60s"}}})}},
                      {{"name", "faas-netes"},
                       {"image", "ghcr.io/openfaas/faas-netes:0.18.17"},
                       {"env", Json::array({{{"name", "read_timeout"}, {"value", "65s"}}})}}}));
    Make({"openfaas-fn", "users"}, {{kOpenFaasFunctionLabel, "users"}}, Json::array());
    Make({"openfaas-fn", "ours"}, {{kOpenFaasFunctionLabel, "ours"}, {kJobUidLabel, "u"}},
         Json::array());
    Make({"openfaas-fn", "database"}, {{"app", "database"}}, Json::array());
  }

  VirtualRuntime time_;
  InMemoryApiServer server_{time_.runtime};
};

TEST_F(OpenFaasLimits, AreWhatItsDeploymentsSay) {
  Install();
  ClusterLimits limits = ReadOpenFaasLimits(server_, {}).value();
  EXPECT_EQ(limits.request_timeout_seconds, 60);
  EXPECT_EQ(limits.request_timeout_source, "upstream_timeout of OpenFaaS' container gateway");
  EXPECT_EQ(limits.max_functions, 15);
  EXPECT_THAT(limits.max_functions_source, HasSubstr("Community Edition (faas-netes-ce 0.18.17)"));
  EXPECT_THAT(limits.unknown, IsEmpty());
  EXPECT_EQ(CountOfUsers(server_, "openfaas-fn").value(), 1);
  LeaveRoomFor(1, &limits);
  EXPECT_EQ(limits.max_functions, 14);
  EXPECT_THAT(limits.max_functions_source, HasSubstr("less 1 of other users"));
}

TEST_F(OpenFaasLimits, WhatWasGivenGoesBefore) {
  Install();
  const ClusterLimits limits =
      ReadOpenFaasLimits(server_, {.max_functions = 30, .timeout_seconds = 90}).value();
  EXPECT_EQ(limits.request_timeout_seconds, 90);
  EXPECT_EQ(limits.max_functions, 30);
}

TEST_F(OpenFaasLimits, WhatMayNotBeReadIsTold) {
  const ClusterLimits limits = ReadOpenFaasLimits(server_, {}).value();
  EXPECT_EQ(limits.request_timeout_seconds, 0);
  EXPECT_EQ(limits.max_functions, 0);
  EXPECT_THAT(limits.unknown,
              ElementsAre(HasSubstr("time-outs of OpenFaaS' gateway and provider")));
  EXPECT_EQ(CountOfUsers(server_, "openfaas-fn").value(), 0);
  EXPECT_THAT(ReadOpenFaasLimits(server_, {.timeout_seconds = 5})->unknown, IsEmpty());
}

}  // namespace
}  // namespace lambdadnn
