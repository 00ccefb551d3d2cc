// SPDX-License-Identifier: Apache-2.0
// What a cluster allows functions, read from objects as others write them, and laid over a
// platform.
#include "operator/cluster_view/cluster_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/cluster_view/knative_config.h"
#include "operator/resources/knative_service.h"
#include "tests/support/hostile_values.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Sentences = std::vector<std::string>;

Json NodeOf(const std::string& memory, const std::string& cpu) {
  return {{"metadata", {{"name", "n1"}, {"labels", {{"zone", "a"}}}}},
          {"status", {{"allocatable", {{"memory", memory}, {"cpu", cpu}, {"pods", "20"}}}}}};
}

Json Requests(const std::string& memory, const std::string& cpu) {
  return {{"resources", {{"requests", {{"memory", memory}, {"cpu", cpu}}}}}};
}

TEST(NodeCapacity, IsWhatTheKubeletOffers) {
  Sentences unknown;
  const auto node = ReadNode(NodeOf("2097151Ki", "1930m"), &unknown);
  ASSERT_TRUE(node.has_value());
  EXPECT_NEAR(node->allocatable.memory_mib, 2047.999, 1e-3);
  EXPECT_EQ(node->allocatable.milli_cpu, 1930);
  EXPECT_EQ(node->allocatable.pods, 20);
  EXPECT_THAT(unknown, IsEmpty());
}

TEST(NodeCapacity, IsNoneOfANodeThatIsCordonedOrMakesNoSense) {
  Sentences unknown;
  Json node = NodeOf("2Gi", "2");
  node["spec"]["unschedulable"] = true;
  EXPECT_FALSE(ReadNode(node, &unknown).has_value());
  EXPECT_THAT(unknown, IsEmpty());
  EXPECT_FALSE(ReadNode(NodeOf("much", "2"), &unknown).has_value());
  EXPECT_THAT(unknown, ElementsAre(HasSubstr("node n1: memory is not counted")));
  for (const char* answer :
       {"[]", "5", "null", R"({"status":[]})", R"({"status":{"allocatable":5}})"}) {
    EXPECT_FALSE(ReadNode(Json::parse(answer), &unknown).has_value()) << answer;
  }
}

// What can be read of a spec.podTemplate.
PodTemplate PodsOf(const Json& json) {
  std::vector<FieldError> ignored;
  return DecodePodTemplate(json, "", &ignored);
}

// Each feature that a field may need, switched off.
std::set<std::string> AllFeatures() {
  Json data = Json::object();
  for (const char* feature :
       {"podspec-nodeselector", "podspec-tolerations", "podspec-affinity",
        "podspec-priorityclassname", "podspec-runtimeclassname", "podspec-schedulername",
        "podspec-topologyspreadconstraints", "podspec-volumes-emptydir",
        "podspec-persistent-volume-claim", "podspec-persistent-volume-write",
        "podspec-volumes-hostpath", "podspec-volumes-csi", "podspec-volumes-ephemeral",
        "podspec-fieldref"}) {
    data[std::string("kubernetes.") + feature] = "disabled";
  }
  return DisabledFeatures({{"data", std::move(data)}});
}

TEST(NodeCapacity, NothingThatAServerMaySayEndsTheProcess) {
  Json pod = {{"metadata", {{"name", "p"}, {"namespace", "s"}}},
              {"spec",
               {{"containers", Json::array({Requests("1Gi", "1")})},
                {"initContainers", Json::array({Requests("1Gi", "1")})},
                {"overhead", {{"memory", "1Mi"}}}}},
              {"status", {{"phase", "Running"}}}};
  Json tainted = NodeOf("1Gi", "1");
  tainted["spec"]["taints"] = Json::array({{{"key", "k"}, {"effect", "NoSchedule"}}});
  const Json pods = Json::parse(R"({"spec": {
      "nodeSelector": {"zone": "a"}, "tolerations": [{"key": "k", "operator": "Exists"}],
      "volumes": [{"name": "v", "persistentVolumeClaim": {"readOnly": true}}],
      "containers": [{"name": "worker", "env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]}]}})");
  const Json quota = {{"spec", {{"scopes", Json::array({"BestEffort"})}}},
                      {"status", {{"hard", {{"pods", "3"}}}, {"used", {{"pods", "1"}}}}}};
  const Json range = {
      {"spec", {{"limits", Json::array({{{"type", "Container"}, {"max", {{"cpu", "1"}}}}})}}}};
  const Json config = {{"data", {{"max-revision-timeout-seconds", "600"}}}};
  ForEachHostileField(Json::array({pod, tainted, pods, quota, range, config}),
                      Json::json_pointer(""), [&](const Json& all) {
                        if (!all.is_array()) return;
                        Sentences unknown;
                        ClusterLimits limits;
                        for (const Json& one : all) {
                          (void)ReadPodResources(one, &unknown);
                          if (const auto node = ReadNode(one, &unknown)) {
                            for (const Json& other : all) (void)Admits(*node, PodsOf(other));
                            (void)AdmitsSome(*node);
                          }
                          ReadQuota(one, {}, &limits);
                          ReadLimitRange(one, &limits);
                          (void)MaxTimeoutSeconds(one, &unknown);
                          (void)MaxScale(one, &unknown);
                          (void)RefusedFields(PodsOf(one), AllFeatures());
                        }
                        (void)WithinLimits(Platform(), limits);
                      });
}

TEST(NodeCapacity, ATaintKeepsAwayWhoDoesNotTolerateIt) {
  Sentences unknown;
  Json node = NodeOf("2Gi", "2");
  node["spec"]["taints"] =
      Json::array({{{"key", "gpu"}, {"value", "yes"}, {"effect", "NoSchedule"}}});
  const auto capacity = *ReadNode(node, &unknown);
  EXPECT_TRUE(AdmitsSome(capacity));
  EXPECT_FALSE(Admits(capacity, {}));
  const auto tolerating = [](const Json& toleration) {
    return PodTemplate{.tolerations = Json::array({toleration})};
  };
  EXPECT_TRUE(Admits(capacity, tolerating({{"key", "gpu"}, {"operator", "Exists"}})));
  EXPECT_TRUE(Admits(capacity, tolerating({{"key", "gpu"}, {"value", "yes"}})));
  EXPECT_TRUE(Admits(capacity, tolerating({{"operator", "Exists"}})));
  EXPECT_FALSE(Admits(capacity, tolerating({{"key", "gpu"}, {"value", "no"}})));
  EXPECT_FALSE(Admits(
      capacity, tolerating({{"key", "gpu"}, {"operator", "Exists"}, {"effect", "NoExecute"}})));
  node["spec"]["taints"][0]["effect"] = "PreferNoSchedule";
  EXPECT_TRUE(Admits(*ReadNode(node, &unknown), {}));
  for (const char* key :
       {"node.kubernetes.io/not-ready", "node-role.kubernetes.io/control-plane"}) {
    node["spec"]["taints"][0] = {{"key", key}, {"effect", "NoSchedule"}};
    EXPECT_FALSE(AdmitsSome(*ReadNode(node, &unknown))) << key;
  }
}

TEST(NodeCapacity, ANodeSelectorMustMatchInAllItsLabels) {
  Sentences unknown;
  const auto node = *ReadNode(NodeOf("2Gi", "2"), &unknown);
  EXPECT_TRUE(Admits(node, {.node_selector = {{"zone", "a"}}}));
  EXPECT_FALSE(Admits(node, {.node_selector = {{"zone", "b"}}}));
  EXPECT_FALSE(Admits(node, {.node_selector = {{"zone", "a"}, {"disk", "fast"}}}));
}

TEST(PodResources, AreWhatTheSchedulerCounts) {
  Sentences unknown;
  Json pod = {
      {"spec", {{"containers", Json::array({Requests("100Mi", "100m"), Requests("50Mi", "1")})}}}};
  EXPECT_EQ(ReadPodResources(pod, &unknown), (PodResources{150, 1100, 1}));
  // What initializes runs alone, and beside what stays.
  pod["spec"]["initContainers"] = Json::array({Requests("400Mi", "10m")});
  EXPECT_EQ(ReadPodResources(pod, &unknown), (PodResources{400, 1100, 1}));
  Json stays = Requests("30Mi", "20m");
  stays["restartPolicy"] = "Always";
  pod["spec"]["initContainers"] = Json::array({stays, Requests("400Mi", "10m")});
  EXPECT_EQ(ReadPodResources(pod, &unknown), (PodResources{430, 1120, 1}));
  pod["spec"]["overhead"] = {{"memory", "5Mi"}, {"cpu", "1m"}};
  EXPECT_EQ(ReadPodResources(pod, &unknown), (PodResources{435, 1121, 1}));
  pod["spec"]["resources"] = {{"requests", {{"memory", "1Gi"}}}};
  EXPECT_EQ(ReadPodResources(pod, &unknown), (PodResources{1029, 1121, 1}));
  for (const char* phase : {"Succeeded", "Failed"}) {
    pod["status"]["phase"] = phase;
    EXPECT_EQ(ReadPodResources(pod, &unknown), PodResources{}) << phase;
  }
  EXPECT_THAT(unknown, IsEmpty());
}

Json Config(const std::string& key, const std::string& value) { return {{"data", {{key, value}}}}; }

TEST(KnativeConfig, TheLongestTimeoutHasKnativesDefault) {
  Sentences unknown;
  constexpr const char* kKey = "max-revision-timeout-seconds";
  EXPECT_EQ(MaxTimeoutSeconds(Config(kKey, "60"), &unknown), 60);
  EXPECT_EQ(MaxTimeoutSeconds(Json::object(), &unknown), 600);
  EXPECT_THAT(unknown, IsEmpty());
  for (const char* bad : {"soon", "0", "-5", "1.5", "99999999999999999999"}) {
    unknown.clear();
    EXPECT_EQ(MaxTimeoutSeconds(Config(kKey, bad), &unknown), 600);
    EXPECT_THAT(unknown, ElementsAre(HasSubstr(bad))) << bad;
  }
}

TEST(KnativeConfig, AScaleOfNoneIsNoLimit) {
  Sentences unknown;
  EXPECT_EQ(MaxScale(Config("max-scale-limit", "12"), &unknown), 12);
  EXPECT_EQ(MaxScale(Config("max-scale-limit", "0"), &unknown), 0);
  EXPECT_EQ(MaxScale(Json::object(), &unknown), 0);
  EXPECT_THAT(unknown, IsEmpty());
  EXPECT_EQ(MaxScale(Config("max-scale-limit", "many"), &unknown), 0);
  EXPECT_THAT(unknown, ElementsAre(HasSubstr("config-autoscaler: max-scale-limit \"many\"")));
}

TEST(KnativeConfig, ASettingBelowThePlatformIsToldWithTheNextStep) {
  Platform platform;
  platform.max_functions = 64;
  platform.function_timeout_seconds = 900;
  EXPECT_THAT(SettingsBelow(platform, 0, 0), IsEmpty());
  EXPECT_THAT(SettingsBelow(platform, 900, 64), IsEmpty());
  EXPECT_THAT(SettingsBelow(platform, 600, 8),
              ElementsAre(testing::AllOf(HasSubstr("at most 8 of the platform's 64"),
                                         HasSubstr("kubectl patch configmap config-autoscaler"),
                                         HasSubstr("\"max-scale-limit\":\"64\"")),
                          testing::AllOf(HasSubstr("ends after 600 s"),
                                         HasSubstr("kubectl patch configmap config-defaults"),
                                         HasSubstr("\"max-revision-timeout-seconds\":\"900\""))));
}

TEST(KnativeConfig, WhatTheWebhookSaysOfAScaleHasANextStep) {
  EXPECT_THAT(NextStepForRefusal("expected 1 <= 9 <= 8: spec.template.metadata.annotations"
                                 "[autoscaling.knative.dev/max-scale]"),
              HasSubstr("raise max-scale-limit in ConfigMap knative-serving/config-autoscaler"));
}

TEST(KnativeConfig, AFieldIsRefusedWhoseFeatureIsOff) {
  PodTemplate pods;
  pods.node_selector = {{"zone", "a"}};
  EXPECT_THAT(RefusedFields(pods, DisabledFeatures(Json::object())), IsEmpty());
  const auto off = DisabledFeatures(Config("kubernetes.podspec-nodeselector", "Disabled"));
  EXPECT_THAT(RefusedFields(pods, off),
              ElementsAre(HasSubstr("spec.podTemplate.spec.nodeSelector is refused")));
  EXPECT_THAT(RefusedFields({}, off), IsEmpty());
  EXPECT_THAT(RefusedFields({.workers = {.node_selector = {{"zone", "a"}}}}, off),
              ElementsAre(HasSubstr("spec.podTemplate.workers.nodeSelector is refused")));
  EXPECT_THAT(DisabledFeatures(Config("kubernetes.podspec-nodeselector", "allowed")), IsEmpty());
}

// The names are those of Knative's own config-features.
TEST(KnativeConfig, EveryFieldKnowsItsFeature) {
  struct Row {
    const char* feature;
    const char* spec;
    const char* field;
  };
  constexpr Row kRows[] = {
      {"podspec-nodeselector", R"({"nodeSelector": {"a": "b"}})", "nodeSelector is"},
      {"podspec-tolerations", R"({"tolerations": [{"key": "a"}]})", "tolerations is"},
      {"podspec-affinity", R"({"affinity": {"nodeAffinity": {}}})", "affinity is"},
      {"podspec-priorityclassname", R"({"priorityClassName": "a"})", "priorityClassName is"},
      {"podspec-runtimeclassname", R"({"runtimeClassName": "a"})", "runtimeClassName is"},
      {"podspec-schedulername", R"({"schedulerName": "a"})", "schedulerName is"},
      {"podspec-topologyspreadconstraints", R"({"topologySpreadConstraints": [{}]})",
       "topologySpreadConstraints is"},
      {"podspec-volumes-emptydir", R"({"volumes": [{"name": "a", "emptyDir": {}}]})",
       "volumes[].emptyDir is"},
      {"podspec-persistent-volume-claim",
       R"({"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}]})",
       "volumes[].persistentVolumeClaim is"},
      {"podspec-persistent-volume-write",
       R"({"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}]})",
       "volumes[].persistentVolumeClaim without readOnly is"},
      {"podspec-volumes-hostpath", R"({"volumes": [{"name": "a", "hostPath": {}}]})",
       "volumes[].hostPath is"},
      {"podspec-volumes-csi", R"({"volumes": [{"name": "a", "csi": {}}]})", "volumes[].csi is"},
      {"podspec-volumes-ephemeral", R"({"volumes": [{"name": "a", "ephemeral": {}}]})",
       "volumes[].ephemeral is"},
      {"podspec-fieldref",
       R"({"containers": [{"name": "worker",
           "env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]}]})",
       "containers[].env[].valueFrom.fieldRef is"},
  };
  for (const Row& row : kRows) {
    const std::string feature = std::string("kubernetes.") + row.feature;
    const PodTemplate pods = PodsOf({{"spec", Json::parse(row.spec)}});
    const auto off = DisabledFeatures(Config(feature.c_str(), "disabled"));
    EXPECT_THAT(
        RefusedFields(pods, off),
        ElementsAre(testing::AllOf(HasSubstr(std::string("spec.podTemplate.spec.") + row.field),
                                   HasSubstr(feature))))
        << row.feature;
    EXPECT_THAT(RefusedFields(pods, {}), IsEmpty());
  }
  // These need no feature; a claim that is read needs one less.
  const Json free = Json::parse(R"({"spec": {"volumes": [
      {"name": "a", "secret": {}}, {"name": "b", "configMap": {}}, {"name": "c", "projected": {}}]}})");
  EXPECT_THAT(RefusedFields(PodsOf(free), AllFeatures()), IsEmpty());
  const Json read = Json::parse(
      R"({"spec": {"volumes": [{"name": "a", "persistentVolumeClaim": {"readOnly": true}}]}})");
  EXPECT_THAT(RefusedFields(PodsOf(read), AllFeatures()),
              ElementsAre(HasSubstr("podspec-persistent-volume-claim")));
}

TEST(KnativeConfig, ARefusalHasANextStep) {
  // As its webhook says it.
  EXPECT_THAT(
      NextStepForRefusal("EmptyDir volume support is disabled, but found EmptyDir volume a"),
      HasSubstr("kubernetes.podspec-volumes-emptydir"));
  EXPECT_THAT(NextStepForRefusal("Persistent volume claim support is disabled, but found "
                                 "persistent volume claim c"),
              HasSubstr("kubernetes.podspec-persistent-volume-claim"));
  EXPECT_THAT(NextStepForRefusal("Persistent volume write support is disabled, but found "
                                 "persistent volume claim c that is not read-only"),
              HasSubstr("kubernetes.podspec-persistent-volume-write"));
  EXPECT_THAT(NextStepForRefusal("must not set the field(s): spec.template.spec.schedulerName"),
              HasSubstr("kubernetes.podspec-schedulername"));
  EXPECT_THAT(NextStepForRefusal("must not set the field(s): spec.template.spec.nodeSelector"),
              HasSubstr("kubernetes.podspec-nodeselector"));
  EXPECT_THAT(NextStepForRefusal("expected 0 <= 900 <= 600: spec.template.spec.timeoutSeconds"),
              HasSubstr("functionTimeoutSeconds"));
  EXPECT_THAT(NextStepForRefusal("containerConcurrency 0 is not allowed"),
              HasSubstr("allow-container-concurrency-zero"));
  EXPECT_THAT(NextStepForRefusal("something else"), HasSubstr("spec.podTemplate"));
}

Platform Configured() {
  Platform platform;
  platform.memory = {128, 1024, 64};
  platform.milli_cpu_per_gib = 500;
  platform.sidecar_memory_mib = 64;
  platform.max_functions = 32;
  platform.function_timeout_seconds = 300;
  return platform;
}

ClusterLimits Limits() {
  ClusterLimits limits;
  limits.sidecar = {64, 25, 0};
  return limits;
}

TEST(WithinLimits, AClusterThatAllowsMoreChangesNothing) {
  ClusterLimits limits = Limits();
  limits.max_timeout_seconds = 600;
  limits.max_scale = 1000;
  limits.max_memory_mib = 4096;
  limits.quota.pods = 500;
  const NarrowedPlatform narrowed = WithinLimits(Configured(), limits);
  EXPECT_EQ(narrowed.platform, Configured());
  EXPECT_THAT(narrowed.narrowed, IsEmpty());
  EXPECT_THAT(narrowed.obstacle, IsEmpty());
}

TEST(WithinLimits, WithoutAnyTheConfiguredPlatformHolds) {
  EXPECT_EQ(WithinLimits(Configured(), {}).platform, Configured());
}

TEST(WithinLimits, TimeoutAndScaleOfKnativeNarrow) {
  ClusterLimits limits = Limits();
  limits.max_timeout_seconds = 60;
  limits.max_scale = 8;
  const NarrowedPlatform narrowed = WithinLimits(Configured(), limits);
  EXPECT_EQ(narrowed.platform.function_timeout_seconds, 60);
  EXPECT_EQ(narrowed.platform.max_functions, 8);
  EXPECT_THAT(narrowed.narrowed, ElementsAre(HasSubstr("60 s"), HasSubstr("8 functions")));
}

TEST(WithinLimits, TheFunctionsOfAGatewayNarrowAndAreToldBySource) {
  ClusterLimits limits = Limits();
  limits.max_functions = 14;
  limits.max_functions_source = "the edition of OpenFaaS less 1 of other users";
  NarrowedPlatform narrowed = WithinLimits(Configured(), limits);
  EXPECT_EQ(narrowed.platform.max_functions, 14);
  EXPECT_THAT(narrowed.narrowed,
              ElementsAre(HasSubstr("14 functions (the edition of OpenFaaS less 1")));
  limits.max_functions = 1;
  narrowed = WithinLimits(Configured(), limits);
  EXPECT_THAT(narrowed.obstacle, HasSubstr("a job needs two at least"));
}

TEST(WithinLimits, GpusAreThoseThatNodesAndQuotasLeaveToJobsThatWantThem) {
  ClusterLimits limits = Limits();
  limits.nodes = {{{4000, 4000, 9, 1}, {4000, 4000, 9, 2}, {4000, 4000, 9}}};
  EXPECT_FALSE(WithinLimits(Configured(), limits).platform.total_gpus.known());
  NarrowedPlatform narrowed = WithinLimits(Configured(), limits, 1);
  EXPECT_EQ(narrowed.platform.total_gpus, 3);
  EXPECT_EQ(narrowed.platform.nodes[1].gpus, 2);
  EXPECT_THAT(narrowed.narrowed, testing::Contains(HasSubstr("3 GPUs (the free nvidia.com/gpu")));
  Platform configured = Configured();
  configured.total_gpus = 2;
  EXPECT_EQ(WithinLimits(configured, limits, 1).platform.total_gpus, 2);
  limits.quota.gpus = 1;
  EXPECT_EQ(WithinLimits(configured, limits, 1).platform.total_gpus, 1);
  limits.quota.gpus = 0;
  EXPECT_THAT(WithinLimits(configured, limits, 1).obstacle, HasSubstr("0 GPUs (a ResourceQuota)"));
  EXPECT_THAT(WithinLimits(configured, limits).obstacle, IsEmpty());
}

TEST(WithinLimits, WorkersWithAGpuAreOnNodesThatHaveOneAndTakeThem) {
  ClusterLimits limits = Limits();
  limits.nodes = {{{700, 4000, 9, 2}, {4000, 4000, 9}}};
  NarrowedPlatform narrowed = WithinLimits(Configured(), limits, 1);
  EXPECT_EQ(narrowed.platform.memory.max_mib, 576);
  EXPECT_THAT(narrowed.narrowed,
              testing::Contains(HasSubstr("576 MiB (the most that a node with a GPU has left)")));
  EXPECT_EQ(WithinLimits(Configured(), limits).platform.memory.max_mib, 1024);
  limits.nodes->front().takes_servers = false;
  narrowed = WithinLimits(Configured(), limits, 1);
  EXPECT_EQ(narrowed.platform.total_gpus, 2);
  EXPECT_FALSE(narrowed.platform.nodes[0].takes_servers);
  EXPECT_TRUE(narrowed.platform.nodes[0].takes_workers);
  limits.nodes->front().takes_workers = false;
  EXPECT_THAT(WithinLimits(Configured(), limits, 1).obstacle,
              HasSubstr("all workers together have 0 GPUs (the free nvidia.com/gpu"));
}

TEST(WithinLimits, TheLargestFunctionIsOneThatANodeHolds) {
  ClusterLimits limits = Limits();
  // 700 - 64 MiB, on the platform's grid of 128 + 64 k.
  limits.nodes = {{{400, 4000, 9}, {700, 4000, 9}}};
  NarrowedPlatform narrowed = WithinLimits(Configured(), limits);
  EXPECT_EQ(narrowed.platform.memory.max_mib, 576);
  EXPECT_EQ(narrowed.platform.total_memory_mib, 1100);
  EXPECT_EQ(narrowed.platform.total_milli_cpu, 0) << "functions do not share these cores";
  EXPECT_EQ(narrowed.platform.max_functions, 18);
  // (225 - 25 - 0.5) mCPU at 500 a GiB.
  limits.nodes = {{{4000, 225, 9}}};
  narrowed = WithinLimits(Configured(), limits);
  EXPECT_EQ(narrowed.platform.memory.max_mib, 384);
  // A node too small for the smallest function adds none.
  limits.nodes = {{{4000, 4000, 9}, {191, 4000, 9}}};
  EXPECT_EQ(WithinLimits(Configured(), limits).platform.total_memory_mib, 4000);
  limits.nodes = {{{4000, 4000, 9}, {192, 4000, 9}}};
  EXPECT_EQ(WithinLimits(Configured(), limits).platform.total_memory_mib, 4192);
}

TEST(WithinLimits, FunctionsFindRoomOnTheNodesThatHoldOne) {
  ClusterLimits limits = Limits();
  limits.nodes = {{{4000, 600, 9}, {191, 4000, 9}, {3000, 500, 7}}};
  limits.sidecar.memory_mib = 50;  // less than the platform counts
  const Platform platform = WithinLimits(Configured(), limits).platform;
  EXPECT_THAT(platform.nodes,
              ElementsAre(Platform::Node{4000, 600, 9}, Platform::Node{3000, 500, 7}));
  EXPECT_EQ(platform.machine_sidecar_memory_mib, 64);
  EXPECT_EQ(platform.machine_sidecar_milli_cpu, 25);
}

TEST(WithinLimits, NoRoomForTheSmallestFunctionIsAnObstacle) {
  ClusterLimits limits = Limits();
  limits.nodes = {{{191, 4000, 9}}};
  EXPECT_THAT(WithinLimits(Configured(), limits).obstacle, HasSubstr("the smallest of 128 MiB"));
  limits.nodes->clear();
  EXPECT_THAT(WithinLimits(Configured(), limits).obstacle, HasSubstr("at most 0 MiB"));
  limits.nodes = {{{4000, 4000, 1}}};
  EXPECT_THAT(WithinLimits(Configured(), limits).obstacle, HasSubstr("needs two at least"));
  limits = Limits();
  limits.min_memory_mib = 2048;
  EXPECT_THAT(WithinLimits(Configured(), limits).obstacle, HasSubstr("at least 2048 MiB"));
}

TEST(WithinLimits, ALimitRangeBoundsAFunctionFromBothSides) {
  ClusterLimits limits = Limits();
  ReadLimitRange(
      {{"metadata", {{"name", "r"}}},
       {"spec",
        {{"limits",
          Json::array({{{"type", "Container"},
                        {"max", {{"memory", "700Mi"}}},
                        {"min", {{"memory", "200Mi"}}}},
                       {{"type", "Pod"}, {"max", {{"memory", "700Mi"}}}},
                       {{"type", "PersistentVolumeClaim"}, {"max", {{"memory", "1Mi"}}}}})}}}},
      &limits);
  EXPECT_EQ(limits.max_memory_mib, 636) << "of a pod, beside queue-proxy";
  const Platform platform = WithinLimits(Configured(), limits).platform;
  EXPECT_EQ(platform.memory.min_mib, 256);
  EXPECT_EQ(platform.memory.max_mib, 576);
  // CPU bounds memory, which it follows.
  ReadLimitRange(
      {{"spec", {{"limits", Json::array({{{"type", "Container"}, {"max", {{"cpu", "150m"}}}}})}}}},
      &limits);
  EXPECT_EQ(WithinLimits(Configured(), limits).platform.memory.max_mib, 256);
}

Json Quota(const Json& hard, const Json& used) {
  return {{"metadata", {{"name", "q"}}}, {"status", {{"hard", hard}, {"used", used}}}};
}

TEST(WithinLimits, WhatFunctionsUseOfAQuotaIsNotTaken) {
  ClusterLimits limits = Limits();
  ReadQuota(Quota({{"requests.memory", "2Gi"}, {"requests.cpu", "2"}, {"pods", "10"}},
                  {{"requests.memory", "1Gi"}, {"requests.cpu", "1500m"}, {"pods", "6"}}),
            {512, 500, 2}, &limits);
  EXPECT_EQ(limits.quota.memory_mib, 2048 - 512);
  EXPECT_EQ(limits.quota.milli_cpu, 2000 - 1000);
  EXPECT_EQ(limits.quota.pods, 10 - 4);
  const Platform platform = WithinLimits(Configured(), limits).platform;
  EXPECT_EQ(platform.total_memory_mib, 1536);
  EXPECT_EQ(platform.max_functions, 6);
}

TEST(WithinLimits, CpuBoundsTheMemoryThatItFollows) {
  ClusterLimits limits = Limits();
  limits.quota.milli_cpu = 500;
  // 500 mCPU a GiB: the 64 MiB of a sidecar stand for more CPU than it requests.
  EXPECT_EQ(WithinLimits(Configured(), limits).platform.total_memory_mib, 1024);
  Platform without = Configured();
  without.sidecar_memory_mib = 0;
  limits.sidecar.memory_mib = 0;
  // Six functions of 128 MiB would request 62.5 + 25 mCPU each: no plan exceeds the 500.
  const double total = WithinLimits(without, limits).platform.total_memory_mib;
  const double functions = std::floor(total / 128);
  EXPECT_LE(functions * (62.5 + 25), 500);
  EXPECT_GE(total, 500) << "but not much is kept back";
  without.milli_cpu_per_gib = 0;
  EXPECT_EQ(WithinLimits(without, limits).platform.total_memory_mib, 0) << "no limit of CPU";
}

TEST(WithinLimits, OfSeveralQuotasTheLeastHolds) {
  ClusterLimits limits = Limits();
  ReadQuota(Quota({{"memory", "3Gi"}}, {{"memory", "0"}}), {}, &limits);
  ReadQuota(Quota({{"limits.memory", "1Gi"}}, {{"limits.memory", "0"}}), {}, &limits);
  ReadQuota(Quota({{"pods", "0"}}, Json::object()), {}, &limits);
  EXPECT_EQ(limits.quota.memory_mib, 1024);
  EXPECT_EQ(limits.quota.pods, 0);
  EXPECT_FALSE(limits.quota.limits_cpu);
  ReadQuota(Quota({{"limits.cpu", "2"}}, Json::object()), {}, &limits);
  EXPECT_TRUE(limits.quota.limits_cpu);
}

TEST(WithinLimits, AQuotaOfAnotherScopeDoesNotCount) {
  ClusterLimits limits = Limits();
  Json quota = Quota({{"pods", "1"}}, Json::object());
  for (const char* scope : {"BestEffort", "Terminating", "CrossNamespacePodAffinity"}) {
    quota["spec"]["scopes"] = Json::array({scope});
    ReadQuota(quota, {}, &limits);
    EXPECT_FALSE(limits.quota.pods.has_value()) << scope;
  }
  quota["spec"].erase("scopes");
  quota["spec"]["scopeSelector"]["matchExpressions"] =
      Json::array({{{"scopeName", "PriorityClass"}, {"operator", "Exists"}}});
  ReadQuota(quota, {}, &limits);
  EXPECT_FALSE(limits.quota.pods.has_value());
  quota["spec"] = {{"scopes", Json::array({"NotTerminating", "NotBestEffort"})}};
  ReadQuota(quota, {}, &limits);
  EXPECT_EQ(limits.quota.pods, 1);
}

TEST(WithinLimits, AQuotaThatCannotBeReadIsToldAndLimitsNothing) {
  ClusterLimits limits = Limits();
  ReadQuota(Quota({{"pods", "a few"}}, Json::object()), {}, &limits);
  EXPECT_FALSE(limits.quota.pods.has_value());
  EXPECT_THAT(limits.unknown, ElementsAre(HasSubstr("ResourceQuota q: pods is not counted")));
}

struct NodeKindRow {
  const char* name;
  Json labels;
  const char* kind;
};

const NodeKindRow kNodeKinds[] = {
    {"none", Json::object(), ""},
    {"no labels at all", nullptr, ""},
    {"of a cloud", {{"node.kubernetes.io/instance-type", "m5.large"}}, "m5.large"},
    {"of an old cloud", {{"beta.kubernetes.io/instance-type", "m4.large"}}, "m4.large"},
    {"by its CPU",
     {{"feature.node.kubernetes.io/cpu-model.vendor_id", "Intel"},
      {"feature.node.kubernetes.io/cpu-model.family", "6"},
      {"feature.node.kubernetes.io/cpu-model.id", "85"}},
     "Intel 6 85"},
    {"by half of it", {{"feature.node.kubernetes.io/cpu-model.family", "6"}}, ""},
    {"no text", {{"node.kubernetes.io/instance-type", 5}}, ""},
};

TEST(NodeKindOf, IsTheInstanceTypeOrTheModelOfTheCpu) {
  for (const NodeKindRow& row : kNodeKinds) {
    EXPECT_EQ(NodeKindOf(row.labels), row.kind) << row.name;
  }
}

}  // namespace
}  // namespace lambdadnn
