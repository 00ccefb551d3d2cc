// SPDX-License-Identifier: Apache-2.0
#include "operator/server/access_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/objectstore/memory_object_store.h"
#include "operator/api/job_schema.h"
#include "operator/server/access_rules.h"
#include "tests/support/manual_runtime.h"
#include "tests/support/reviewing_kube.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(AccessRules, HoldWhatTheOperatorAsksOfTheServer) {
  std::set<std::string> rules;
  for (const AccessRule& rule : AccessRules()) rules.insert(rule.set + ": " + DescribeRule(rule));
  EXPECT_TRUE(rules.contains("jobs: watch serverlesstrainingjobs in lambdadnn.io"));
  EXPECT_TRUE(rules.contains("jobs: patch serverlesstrainingjobs/status in lambdadnn.io"));
  EXPECT_TRUE(rules.contains("jobs: create secrets"));
  EXPECT_TRUE(rules.contains("lease: update leases in coordination.k8s.io"));
  EXPECT_TRUE(rules.contains(
      "optional: get customresourcedefinitions \"serverlesstrainingjobs.lambdadnn.io\" in "
      "apiextensions.k8s.io"));
}

TEST(AccessCheck, AllIsWell) {
  ReviewingKube kube;
  const auto findings = CheckCluster(kube, {.namespaces = {"a", "b"}, .lease_namespace = "system"});
  EXPECT_TRUE(AllUsable(findings)) << FormatFindings(findings);
  const std::string text = FormatFindings(findings);
  EXPECT_THAT(text, HasSubstr("in namespace a"));
  EXPECT_THAT(text, HasSubstr("in namespace b"));
  EXPECT_THAT(text, HasSubstr("the Lease hold in namespace system"));
  EXPECT_THAT(text, Not(HasSubstr("missing")));
}

TEST(AccessCheck, AMissingRuleOfIsolationIsAWarningThatNamesIt) {
  int rules = 0;
  for (const AccessRule& rule : AccessRules()) {
    if (rule.set != "isolation") continue;
    ++rules;
    ReviewingKube kube;
    kube.forbidden = {"b: " + rule.verb + " " + rule.resource};
    const AccessCheckOptions options{.namespaces = {"a", "b"}, .knative = true};
    const auto findings = CheckCluster(kube, options);
    EXPECT_TRUE(AllUsable(findings));
    EXPECT_THAT(FormatFindings(findings),
                HasSubstr("warning  access: may not " + DescribeRule(rule) + " in namespace b"));
    EXPECT_THAT(FormatFindings(CheckCluster(kube, {.namespaces = {"b"}})),
                Not(HasSubstr("may not")))
        << "the backend Local needs none";
  }
  EXPECT_GT(rules, 0);
}

TEST(AccessCheck, OfOpenFaasTheRulesOfTheFunctionsNamespaceAreSpared) {
  ReviewingKube kube;
  kube.forbidden = {"fn: watch pods"};
  const auto findings = CheckCluster(kube, {.namespaces = {"team"}, .openfaas_namespace = "fn"});
  EXPECT_TRUE(AllUsable(findings));
  EXPECT_THAT(
      FormatFindings(findings),
      HasSubstr("warning  access: may not watch pods in namespace fn; jobs run all the same, "
                "and their status tells of a function only whether it is available"));
  EXPECT_THAT(FormatFindings(findings), Not(HasSubstr("serving.knative.dev")));
  EXPECT_THAT(FormatFindings(CheckCluster(kube, {.namespaces = {"team"}})), Not(HasSubstr("fn")));
}

TEST(AccessCheck, OfOpenFaasItselfDeploymentsTellTimeouts) {
  ReviewingKube kube;
  const AccessCheckOptions options{
      .namespaces = {"team"}, .openfaas_namespace = "fn", .openfaas_gateway_namespace = "openfaas"};
  EXPECT_THAT(FormatFindings(CheckCluster(kube, options)), Not(HasSubstr("warning")));
  kube.forbidden = {"openfaas: list deployments"};
  const auto findings = CheckCluster(kube, options);
  EXPECT_TRUE(AllUsable(findings));
  EXPECT_THAT(FormatFindings(findings),
              HasSubstr("may not list deployments in apps in namespace openfaas: time-outs"));
}

TEST(AccessCheck, EveryMissingRuleIsNamedWithItsNamespace) {
  for (const AccessRule& rule : AccessRules()) {
    if (rule.set == "optional" || rule.set == "isolation" || rule.set == "limits") continue;
    if (rule.set == "openfaas" || rule.set == "gateway") continue;
    ReviewingKube kube;
    std::string what = rule.verb + " " + rule.resource;
    if (!rule.subresource.empty()) what += "/" + rule.subresource;
    kube.forbidden = {"b: " + what, "system: " + what};
    const auto findings = CheckCluster(
        kube, {.namespaces = {"a", "b"}, .lease_namespace = "system", .knative = true});
    EXPECT_FALSE(AllUsable(findings)) << what;
    EXPECT_THAT(FormatFindings(findings), HasSubstr("may not " + DescribeRule(rule)));
    EXPECT_THAT(FormatFindings(findings), Not(HasSubstr("in namespace a; bind")));
  }
}

TEST(AccessCheck, EveryOptionalRuleThatIsMissingIsAWarningWithWhatIsLost) {
  for (const AccessRule& rule : AccessRules()) {
    if (rule.set != "optional" && rule.set != "limits") continue;
    if (rule.resource == "customresourcedefinitions") continue;  // CheckCrd's
    ReviewingKube kube;
    const std::string place = rule.set == "limits" ? "b: " : ": ";
    kube.forbidden = {place + rule.verb + " " + rule.resource};
    const auto findings = CheckCluster(kube, {.namespaces = {"a", "b"}, .knative = true});
    EXPECT_TRUE(AllUsable(findings)) << rule.resource;
    EXPECT_THAT(FormatFindings(findings),
                HasSubstr("warning  access: may not " + DescribeRule(rule)));
    EXPECT_THAT(FormatFindings(CheckCluster(kube, {.namespaces = {"a", "b"}})),
                Not(HasSubstr("warning")))
        << "functions of the backend Local have no such limits";
  }
}

TEST(AccessCheck, AServerThatDoesNotAnswerIsTheOnlyFinding) {
  ReviewingKube kube;
  kube.down = UnavailableError("connection refused");
  const auto findings = CheckCluster(kube, {});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].text, HasSubstr("connection refused"));
  EXPECT_FALSE(AllUsable(findings));
}

TEST(AccessCheck, SaysWhatACrdLacks) {
  ReviewingKube kube;
  Json& version = kube.crd.value()["spec"]["versions"][0];
  version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].erase("training");
  EXPECT_FALSE(AllUsable(CheckCluster(kube, {})));
  EXPECT_THAT(FormatFindings(CheckCluster(kube, {})), HasSubstr("lacks spec.training"));
  kube.crd.value()["spec"]["versions"][0]["name"] = "v1";
  EXPECT_FALSE(AllUsable(CheckCluster(kube, {})));
  kube.crd = NotFoundError("no");
  EXPECT_THAT(FormatFindings(CheckCluster(kube, {})), HasSubstr("is not installed"));
  kube.crd = PermissionDeniedError("forbidden");
  EXPECT_TRUE(AllUsable(CheckCluster(kube, {}))) << "it may be right";
  EXPECT_THAT(FormatFindings(CheckCluster(kube, {})), HasSubstr("warning"));
}

TEST(AccessCheck, AReviewThatDoesNotSayYesAllowsNothing) {
  for (const char* answer :
       {"[]", "5", "null", "\"yes\"", "{}", "{\"status\":[1]}", "{\"status\":\"allowed\"}",
        "{\"status\":{\"allowed\":\"yes\"}}", "{\"status\":{\"allowed\":1}}"}) {
    ReviewingKube kube;
    kube.review = Json::parse(answer);
    const auto findings = CheckCluster(kube, {.lease_namespace = "system"});
    EXPECT_FALSE(AllUsable(findings)) << answer;
    EXPECT_THAT(FormatFindings(findings), HasSubstr("may not ")) << answer;
  }
}

TEST(AccessCheck, ACrdThatMakesNoSenseLacksAll) {
  for (const char* spec :
       {R"([])", R"(5)", R"({})", R"({"versions":5})", R"({"versions":[5]})",
        R"({"versions":{"a":1}})", R"({"versions":[{"name":"v1alpha1","schema":[]}]})",
        R"({"versions":[{"name":"v1alpha1","schema":{"openAPIV3Schema":
            {"properties":[5],"items":5,"additionalProperties":true}}}]})"}) {
    ReviewingKube kube;
    kube.crd.value()["spec"] = Json::parse(spec);
    const auto findings = CheckCluster(kube, {});
    EXPECT_FALSE(AllUsable(findings)) << spec;
    EXPECT_THAT(FormatFindings(findings), HasSubstr("it lacks")) << spec;
  }
  ReviewingKube kube;
  kube.crd = Json::array();
  EXPECT_FALSE(AllUsable(CheckCluster(kube, {})));
}

TEST(CheckStore, TriesAndLeavesNothing) {
  ManualRuntime time;
  MemoryObjectStore store;
  EXPECT_EQ(CheckStore(time.runtime, store).level, CheckFinding::Level::kGood);
  EXPECT_TRUE(ListAll(store, "").value().empty());
}

}  // namespace
}  // namespace lambdadnn
