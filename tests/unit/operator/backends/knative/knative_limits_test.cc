// SPDX-License-Identifier: Apache-2.0
// What the Knative backend reads of a cluster's limits, and how it tells what the cluster refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "operator/backends/knative/service_refusal.h"
#include "tests/support/hostile_values.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// For a watch to have heard of what was made, and for what was summed up to be old.
constexpr Duration kUntilSeen = std::chrono::seconds(2);

// Of 2 GiB and two cores, like all others here.
Json Node(const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}}},
          {"status", {{"allocatable", {{"memory", "2Gi"}, {"cpu", "2"}, {"pods", "110"}}}}}};
}

Json PodOn(const std::string& node, const std::string& name, const std::string& memory) {
  return {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", name}, {"namespace", "team"}}},
      {"spec",
       {{"nodeName", node},
        {"containers",
         Json::array({{{"name", "c"},
                       {"resources", {{"requests", {{"memory", memory}, {"cpu", "100m"}}}}}}})}}}};
}

Json Configuration(const std::string& name, const std::string& key, const std::string& value) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"namespace", "knative-serving"}}},
          {"data", {{key, value}}}};
}

const ResourceType kConfigMaps = {"", "v1", "configmaps", "ConfigMap"};
const ResourceType kQuotas = {"", "v1", "resourcequotas", "ResourceQuota"};

TEST_F(Knative, CapacityIsWhatOtherPodsLeaveOnTheNodes) {
  Start();
  Do([&] {
    Json cordoned = Node("c");
    cordoned["spec"]["unschedulable"] = true;
    for (const Json& node : {Node("a"), Node("b"), cordoned}) {
      ASSERT_TRUE(server_.Create(NodeType(), node).ok());
    }
    ASSERT_TRUE(server_.Create(PodType(), PodOn("a", "other", "500Mi")).ok());
    ASSERT_TRUE(server_.Create(PodType(), PodOn("c", "elsewhere", "500Mi")).ok());
    ASSERT_TRUE(server_.Create(PodType(), PodOn("", "waiting", "500Mi")).ok());
    Json own = PodOn("b", "function", "700Mi");
    own["metadata"]["labels"] = {{kJobUidLabel, "some"}};
    ASSERT_TRUE(server_.Create(PodType(), own).ok());
    process_.runtime().clock.SleepFor(kUntilSeen);
    const auto capacity = backend_->Capacity();
    ASSERT_TRUE(capacity.ok());
    EXPECT_EQ(capacity->memory_mib, 4096 - 500);
    EXPECT_EQ(capacity->milli_cpu, 2 * 2000 - 100);
    EXPECT_EQ(capacity->functions, 2 * 110 - 1);
    // Not none: that would be no limit.
    ASSERT_TRUE(server_.Create(PodType(), PodOn("a", "large", "8Gi")).ok());
    ASSERT_TRUE(server_.Create(PodType(), PodOn("b", "larger", "8Gi")).ok());
    process_.runtime().clock.SleepFor(kUntilSeen);
    EXPECT_EQ(backend_->Capacity()->memory_mib, 1);
    EXPECT_EQ(backend_->Capacity()->milli_cpu, 2 * 2000 - 3 * 100);
  });
}

TEST_F(Knative, FunctionsOfNamespacesThatAreNotLookedAfterAreOtherPods) {
  KnativeBackend::Options options;
  options.namespaces = {"team"};
  Start(options);
  Do([&] {
    ASSERT_TRUE(server_.Create(NodeType(), Node("a")).ok());
    Json own = PodOn("a", "function", "500Mi");
    own["metadata"]["labels"] = {{kJobUidLabel, "some"}};
    ASSERT_TRUE(server_.Create(PodType(), own).ok());
    own["metadata"]["namespace"] = "others";
    ASSERT_TRUE(server_.Create(PodType(), own).ok());
    process_.runtime().clock.SleepFor(kUntilSeen);
    EXPECT_EQ(backend_->Capacity()->memory_mib, 2048 - 500);
  });
}

TEST_F(Knative, CapacityIsNoLimitWhereNodesMayNotBeReadAndOneOnceTheyMay) {
  forbidden_list_ = "nodes";
  Start();
  Do([&] {
    ASSERT_TRUE(server_.Create(NodeType(), Node("a")).ok());
    EXPECT_EQ(backend_->Capacity()->memory_mib, 0);
    forbidden_list_ = "";
    process_.runtime().clock.SleepFor(FromSeconds(70));
    EXPECT_EQ(backend_->Capacity()->memory_mib, 2048);
  });
}

TEST_F(Knative, LimitsAreThoseOfTheClusterAndTheNamespace) {
  Start();
  Do([&] {
    ASSERT_TRUE(server_.Create(NodeType(), Node("a")).ok());
    ASSERT_TRUE(server_.Create(PodType(), PodOn("a", "other", "500Mi")).ok());
    for (const Json& config :
         {Configuration("config-defaults", "max-revision-timeout-seconds", "60"),
          Configuration("config-autoscaler", "max-scale-limit", "9"),
          Configuration("config-features", "kubernetes.podspec-affinity", "disabled")}) {
      ASSERT_TRUE(server_.Create(kConfigMaps, config).ok());
    }
    ASSERT_TRUE(server_
                    .Create(kQuotas, {{"apiVersion", "v1"},
                                      {"kind", "ResourceQuota"},
                                      {"metadata", {{"name", "q"}, {"namespace", "team"}}},
                                      {"spec", {{"hard", {{"pods", "4"}}}}}})
                    .ok());
    process_.runtime().clock.SleepFor(kUntilSeen);
    const auto limits = backend_->Limits("team", PodTemplate());
    ASSERT_TRUE(limits.ok()) << limits.status().ToString();
    EXPECT_EQ(limits->max_timeout_seconds, 60);
    EXPECT_EQ(limits->max_scale, 9);
    EXPECT_THAT(limits->disabled_features, testing::ElementsAre("kubernetes.podspec-affinity"));
    EXPECT_EQ(limits->quota.pods, 4);
    ASSERT_TRUE(limits->nodes.has_value());
    EXPECT_THAT(*limits->nodes, testing::ElementsAre(PodResources{1548, 1900, 109}));
    EXPECT_EQ(limits->sidecar.memory_mib, 64);
    EXPECT_THAT(limits->unknown, IsEmpty());
    EXPECT_FALSE(backend_->Limits("others", PodTemplate())->quota.pods.has_value());
    // A node that the job's selector does not admit.
    const auto selected = backend_->Limits("team", PodTemplate{.node_selector = {{"zone", "b"}}});
    EXPECT_THAT(*selected->nodes, IsEmpty());
    // One that it admits for servers alone.
    const auto elsewhere =
        backend_->Limits("team", PodTemplate{.workers = {.node_selector = {{"zone", "b"}}}});
    ASSERT_EQ(elsewhere->nodes->size(), 1u);
    EXPECT_FALSE(elsewhere->nodes->front().takes_workers);
    EXPECT_TRUE(elsewhere->nodes->front().takes_servers);
    EXPECT_EQ(elsewhere->nodes->front().memory_mib, 1548);
  });
}

TEST_F(Knative, AThousandJobsAskForTheLimitsOnce) {
  Start();
  Do([&] {
    ASSERT_TRUE(server_.Create(NodeType(), Node("a")).ok());
    (void)backend_->Limits("team", PodTemplate());
    const std::map<std::string, int> before = calls_;
    for (int i = 0; i < 1000; ++i) (void)backend_->Limits("team", PodTemplate());
    EXPECT_EQ(calls_, before);
  });
}

// What is asked for one after another, the `index`-th refused.
TEST_F(Knative, WhatMayNotBeReadIsNamedAndNothingElseIsLost) {
  Start();
  Do([&] {
    ASSERT_TRUE(server_.Create(NodeType(), Node("a")).ok());
    for (const char* name : {"config-defaults", "config-autoscaler", "config-features"}) {
      ASSERT_TRUE(server_.Create(kConfigMaps, Configuration(name, "k", "v")).ok());
    }
    const std::vector<std::string> named = {"longest timeout", "largest scale", "features",
                                            "LimitRanges", "ResourceQuotas"};
    for (size_t index = 0; index < named.size(); ++index) {
      process_.runtime().clock.SleepFor(FromSeconds(31));
      size_t asked = 0;
      decide_ = [&](const std::string& call, Point point) {
        const bool reads = (call == "get" || call == "list") && point == Point::kBefore;
        return reads && asked++ == index ? PermissionDeniedError("may not") : OkStatus();
      };
      const auto limits = backend_->Limits("team", PodTemplate());
      ASSERT_TRUE(limits.ok()) << limits.status().ToString();
      EXPECT_THAT(limits->unknown, testing::ElementsAre(HasSubstr(named[index]))) << index;
      decide_ = nullptr;
    }
  });
}

TEST_F(Knative, AQuotaOnLimitsOfCpuGivesTheSidecarOne) {
  Start();
  Do([&] {
    ASSERT_TRUE(server_
                    .Create(kQuotas, {{"apiVersion", "v1"},
                                      {"kind", "ResourceQuota"},
                                      {"metadata", {{"name", "q"}, {"namespace", "team"}}},
                                      {"spec", {{"hard", {{"limits.cpu", "4"}}}}}})
                    .ok());
  });
  ASSERT_TRUE(Ensure(Group(1)).ok());
  const Json service = stand_in_.All(KnativeServiceType()).at(0);
  EXPECT_EQ(service["spec"]["template"]["metadata"]["annotations"]
                   ["queue.sidecar.serving.knative.dev/cpu-resource-limit"],
            "100m");
}

TEST_F(Knative, AGroupThatKnativeWouldRefuseForItsScaleIsToldBeforeAnythingIsMade) {
  Start();
  Do([&] {
    const Json config = Configuration("config-autoscaler", "max-scale-limit", "2");
    ASSERT_TRUE(server_.Create(kConfigMaps, config).ok());
  });
  EXPECT_TRUE(Ensure(Group(2)).ok());
  const Status larger = Ensure(Group(3, "servers"));
  EXPECT_EQ(larger.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(larger.message(), HasSubstr("group servers has 3 functions"));
  EXPECT_THAT(larger.message(), HasSubstr("kubectl patch configmap config-autoscaler"));
  EXPECT_THAT(larger.message(), HasSubstr("\"max-scale-limit\":\"3\""));
  EXPECT_THAT(stand_in_.All(KnativeServiceType()), SizeIs(1));
  EXPECT_THAT(stand_in_.All(SecretType()), SizeIs(1));
  // A function with a Service of its own is a group of one.
  FunctionGroup single = Group(3, "servers");
  single.addressing = Addressing::kService;
  EXPECT_TRUE(Ensure(single).ok());
  // Nor does a group grow beyond it.
  Settle();
  EXPECT_EQ(Ensure(Group(4)).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Ensure(Group(1)).ok());
}

TEST_F(Knative, AScaleThatWasNeverReachedDoesNotHoldASmallerOneUp) {
  Start();
  ASSERT_TRUE(Ensure(Group(4)).ok());
  Settle();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  const Json annotations = stand_in_.All(PodAutoscalerType()).at(0)["metadata"]["annotations"];
  for (const char* name : {kMinScaleAnnotation, kMaxScaleAnnotation, kInitialScaleAnnotation}) {
    EXPECT_EQ(annotations[name], "2") << name;
  }
}

TEST_F(Knative, APreflightMakesNothing) {
  std::vector<Json> tried;
  KnativeBackend::Options options;
  options.try_create = [&](const ResourceType&, const Json& object) -> Result<Json> {
    tried.push_back(object);
    return object;
  };
  Start(options);
  Do([&] { EXPECT_TRUE(backend_->Preflight(Group(1)).ok()); });
  ASSERT_THAT(tried, SizeIs(1));
  EXPECT_EQ(NameOf(tried[0]).name, "digits-workers");
  EXPECT_EQ(tried[0]["metadata"]["annotations"]["features.knative.dev/podspec-dryrun"], "enabled");
  EXPECT_EQ(calls_["create"], 0);
  EXPECT_THAT(stand_in_.All(KnativeServiceType()), IsEmpty());
}

TEST_F(Knative, WhatTheWebhookRefusesIsToldInItsWordsWithTheNextStep) {
  Status answer;
  KnativeBackend::Options options;
  options.try_create = [&](const ResourceType&, const Json& object) -> Result<Json> {
    return answer.ok() ? Result<Json>(object) : Result<Json>(answer);
  };
  Start(options);
  const auto preflight = [&] {
    Status status;
    Do([&] { status = backend_->Preflight(Group(1)); });
    return status;
  };
  answer = InvalidArgumentError(
      "admission webhook \"validation.webhook.serving.knative.dev\" denied the request: validation "
      "failed: must not set the field(s): spec.template.spec.nodeSelector");
  EXPECT_EQ(preflight().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(preflight().message(), HasSubstr("must not set the field(s)"));
  EXPECT_THAT(preflight().message(), HasSubstr("kubernetes.podspec-nodeselector"));
  answer = PermissionDeniedError("pods \"x\" is forbidden: violates PodSecurity \"restricted\"");
  EXPECT_EQ(preflight().code(), StatusCode::kFailedPrecondition);
  answer = NotFoundError("the server could not find the requested resource");
  EXPECT_THAT(preflight().message(), HasSubstr("install Knative"));
  // What ends by itself, or says nothing about the functions.
  for (const Status& other :
       {PermissionDeniedError(
            "exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4"),
        PermissionDeniedError("services.serving.knative.dev is forbidden: User \"o\" cannot create "
                              "resource \"services\""),
        InvalidArgumentError("admission webhook \"w\" does not support dry run"),
        AlreadyExistsError("there is one"), UnimplementedError("cannot be asked")}) {
    answer = other;
    EXPECT_TRUE(preflight().ok()) << other.ToString();
  }
  answer = UnavailableError("down");
  EXPECT_EQ(preflight().code(), StatusCode::kUnavailable);
}

Json Refused(const std::string& message) {
  return {{"status",
           {{"conditions", Json::array({{{"type", "ConfigurationsReady"},
                                         {"status", "False"},
                                         {"message", message}}})}}}};
}

TEST(RefusalOfPods, SaysWhichQuotaAndHowMuchIsMissing) {
  const Status refusal = RefusalOfPods(
      Refused("Revision \"digits-workers-00001\" failed with message: pods \"digits-x\" is "
              "forbidden: exceeded quota: small, requested: pods=1,requests.memory=448Mi, used: "
              "pods=2,requests.memory=896Mi, limited: pods=10,requests.memory=1Gi."));
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refusal.message(), HasSubstr("of ResourceQuota small 320 MiB of requests.memory"));
  EXPECT_THAT(refusal.message(), testing::Not(HasSubstr("of pods")));
}

TEST(RefusalOfPods, WordsOfAnotherFormStandAsTheyAre) {
  for (const char* words :
       {"pods \"x\" is forbidden: failed quota: q: must specify limits.cpu for: queue-proxy",
        "pods \"x\" is forbidden: exceeded quota: q, requested: , used",
        "pods \"x\" is forbidden: exceeded quota: q, requested: pods=a, used: pods=b, limited: "
        "pods=c"}) {
    EXPECT_EQ(RefusalOfPods(Refused(words)).code(), StatusCode::kResourceExhausted) << words;
    EXPECT_THAT(RefusalOfPods(Refused(words)).message(), HasSubstr("quota")) << words;
  }
  const Status other =
      RefusalOfPods(Refused("pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\""));
  EXPECT_EQ(other.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(other.message(), HasSubstr("violates PodSecurity"));
}

TEST(RefusalOfPods, NothingElseIsOne) {
  EXPECT_TRUE(RefusalOfPods(Refused("Unable to fetch image")).ok());
  EXPECT_TRUE(RefusalOfPods(Json::object()).ok());
  ForEachHostileField(Refused("pods \"x\" is forbidden: exceeded quota: q"),
                      Json::json_pointer("/status"),
                      [](const Json& service) { (void)RefusalOfPods(service); });
}

TEST_F(Knative, AUsedUpQuotaIsToldOnlyWhilePodsAreMissing) {
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  const Json service = stand_in_.All(KnativeServiceType()).at(0);
  const Json refused = Refused("pods \"x\" is forbidden: exceeded quota: q");
  ASSERT_TRUE(
      server_.Patch(KnativeServiceType(), NameOf(service), refused, Subresource::kStatus).ok());
  RunFor(3);
  EXPECT_EQ(Ensure(Group(2)).code(), StatusCode::kResourceExhausted);
  Settle();
  RunFor(3);
  EXPECT_TRUE(Ensure(Group(2)).ok());
}

}  // namespace
}  // namespace lambdadnn
