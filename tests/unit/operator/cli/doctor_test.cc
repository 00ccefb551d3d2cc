// SPDX-License-Identifier: Apache-2.0
// What `lambdadnn doctor` says of a cluster, on an API server in memory.
#include "operator/cli/cluster/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/cli/cluster/cluster_platform.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/in_memory_api_server.h"
#include "operator/server/access_rules.h"
#include "tests/support/reviewing_kube.h"
#include "tests/support/virtual_runtime.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::Not;

const ResourceType kConfigMaps = {"", "v1", "configmaps", "ConfigMap"};

class Doctor : public testing::Test {
 protected:
  Doctor() : server_(time_.runtime), kube_(&server_) {
    server_.Define(JobDefinition());
    for (const ResourceType& type : {kConfigMaps, NodeType(), PodType(),
                                     ResourceType{"", "v1", "resourcequotas", "ResourceQuota"},
                                     ResourceType{"", "v1", "limitranges", "LimitRange"}}) {
      ResourceDefinition definition;
      definition.type = type;
      server_.Define(std::move(definition));
    }
  }

  void Make(const std::string& namespace_name, const std::string& name, const Json& data) {
    const Json map = {{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", {{"name", name}, {"namespace", namespace_name}}},
                      {"data", data}};
    ASSERT_TRUE(server_.Create(kConfigMaps, map).ok());
  }
  void Publish(const std::string& platform = "maxFunctions: 64\n") {
    Make(kPlatformNamespace, kPlatformConfigMap, {{kPlatformKey, platform}});
  }
  std::vector<CheckFinding> Examine() {
    return ExamineCluster(kube_, time_.runtime, {.namespace_name = "team", .one_namespace = true});
  }

  VirtualRuntime time_;
  InMemoryApiServer server_;
  ReviewingKube kube_;
};

TEST_F(Doctor, WherePodsRunTheRulesThatBoundThemAreLookedAtAsByTheOperatorsCheck) {
  Publish();
  EXPECT_THAT(FormatFindings(Examine()), HasSubstr("rules for isolation hold in namespace team"));
  int rules = 0;
  for (const AccessRule& rule : AccessRules()) {
    if (rule.set != "isolation") continue;
    ++rules;
    kube_.forbidden = {"team: " + rule.verb + " " + rule.resource};
    const auto findings = Examine();
    EXPECT_TRUE(AllUsable(findings)) << "jobs run all the same";
    // Its own rules first, in the words of --check.
    const std::string of_operator =
        FormatFindings(CheckCluster(kube_, {.namespaces = {"team"}, .knative = true}));
    EXPECT_THAT(of_operator, HasSubstr("warning  access: may not " + DescribeRule(rule)));
    EXPECT_THAT(FormatFindings(findings), testing::StartsWith(of_operator));
  }
  EXPECT_GT(rules, 0);
}

TEST_F(Doctor, AMissingRuleForFunctionsIsMissing) {
  Publish();
  kube_.forbidden = {"team: create services"};
  EXPECT_FALSE(AllUsable(Examine()));
}

TEST_F(Doctor, WithoutAPlatformNoPodsAreExpected) {
  kube_.forbidden = {"team: create networkpolicies", "team: create services"};
  const auto findings = Examine();
  EXPECT_TRUE(AllUsable(findings)) << FormatFindings(findings);
  EXPECT_THAT(FormatFindings(findings), HasSubstr("does not publish its platform"));
  EXPECT_THAT(FormatFindings(findings), Not(HasSubstr("may not")));
}

TEST_F(Doctor, ASettingOfKnativeBelowThePlatformIsToldWithTheNextStep) {
  Publish();
  EXPECT_THAT(FormatFindings(Examine()), Not(HasSubstr("warning  Knative")));
  Make("knative-serving", "config-autoscaler", {{"max-scale-limit", "8"}});
  const auto findings = Examine();
  EXPECT_TRUE(AllUsable(findings)) << "smaller jobs run";
  EXPECT_THAT(FormatFindings(findings),
              HasSubstr("warning  Knative: jobs have at most 8 of the platform's 64 functions"));
  EXPECT_THAT(FormatFindings(findings), HasSubstr("kubectl patch configmap config-autoscaler"));
}

TEST_F(Doctor, OfOpenFaasTheFunctionsNamespaceIsExamined) {
  Make("lambdadnn-system", "lambdadnn-platform",
       {{"platform.yaml", "maxFunctions: 64\n"}, {"functionNamespace", "openfaas-fn"}});
  kube_.forbidden = {"team: create services", "openfaas-fn: watch pods"};
  const auto findings = Examine();
  EXPECT_TRUE(AllUsable(findings)) << FormatFindings(findings);
  EXPECT_THAT(FormatFindings(findings), HasSubstr("may not watch pods in namespace openfaas-fn"));
  EXPECT_THAT(FormatFindings(findings),
              HasSubstr("warning  OpenFaaS: functions of all namespaces"));
  EXPECT_THAT(FormatFindings(findings), Not(HasSubstr("Knative")));
  EXPECT_THAT(FormatFindings(findings),
              HasSubstr("warning  OpenFaaS: the time-outs of gateway and provider are not known"));
}

TEST_F(Doctor, OfOpenFaasItsDeploymentsTellEditionAndTimeouts) {
  ResourceDefinition definition;
  definition.type = DeploymentType();
  server_.Define(std::move(definition));
  Make("lambdadnn-system", "lambdadnn-platform",
       {{"platform.yaml", "maxFunctions: 64\n"},
        {"functionNamespace", "openfaas-fn"},
        {"gatewayNamespace", "faas"}});
  const Json container = {{"name", "faas-netes"},
                          {"image", "ghcr.io/openfaas/faas-netes:0.18.17"},
                          {"env", Json::array({{{"name", "read_timeout"}, {"value", "1s"}}})}};
  ASSERT_TRUE(
      server_
          .Create(
              DeploymentType(),
              {{"apiVersion", "apps/v1"},
               {"kind", "Deployment"},
               {"metadata", {{"name", "gateway"}, {"namespace", "faas"}}},
               {"spec", {{"template", {{"spec", {{"containers", Json::array({container})}}}}}}}})
          .ok());
  const auto findings = Examine();
  EXPECT_FALSE(AllUsable(findings));
  EXPECT_THAT(
      FormatFindings(findings),
      HasSubstr("missing  OpenFaaS: read_timeout of OpenFaaS' container faas-netes is 1 s"));
  EXPECT_THAT(FormatFindings(findings),
              HasSubstr("at most 15 functions (OpenFaaS Community Edition"));
}

TEST_F(Doctor, RunningJobsWhoseFunctionsDoNotReachEachOtherAreNamed) {
  EXPECT_THAT(FormatFindings(Examine()), Not(HasSubstr("connections")));
  Json job = Json::parse(R"({
    "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
    "metadata": {"name": "digits", "namespace": "team"},
    "spec": {"model": {"builtin": {"name": "cnn"}}, "dataset": {"renderedDigits": {}},
             "training": {"epochs": 3, "globalBatchSize": 60}, "objective": {"deadlineSeconds": 90}}})");
  job = server_.Create(ServerlessTrainingJobType(), job).value();
  job["status"] = {{"phase", "Running"},
                   {"conditions",
                    {{{"type", "PeersConnected"},
                      {"status", "False"},
                      {"reason", "PeersUnreachable"},
                      {"message", "1 of 5 functions do not reach 3 others"},
                      {"lastTransitionTime", "2026-01-01T00:00:00Z"}}}}};
  ASSERT_TRUE(server_.Update(ServerlessTrainingJobType(), job, Subresource::kStatus).ok());
  const auto findings = Examine();
  EXPECT_TRUE(AllUsable(findings)) << "it runs all the same";
  EXPECT_THAT(FormatFindings(findings),
              HasSubstr("warning  connections: of job digits in namespace team: 1 of 5 functions"));
}

TEST_F(Doctor, APublishedPlatformThatCannotBeReadIsTold) {
  Publish("maxFunctions: many\n");
  EXPECT_THAT(FormatFindings(Examine()), HasSubstr("warning  platform: lambdadnn-system/"));
}

TEST_F(Doctor, AServerThatDoesNotAnswerIsTheOnlyFinding) {
  kube_.down = UnavailableError("connection refused");
  const auto findings = Examine();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].text, HasSubstr("connection refused"));
}

}  // namespace
}  // namespace lambdadnn
