// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/knative_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

FunctionGroup Workers() {
  FunctionGroup group;
  group.job_uid = "uid-1";
  group.namespace_name = "team";
  group.job_name = "digits";
  group.name = "workers-r2";
  group.program = FunctionProgram::kWorker;
  group.count = 4;
  group.memory_mib = 1728;
  group.milli_cpu = 430;
  group.timeout_seconds = 299.9;
  return group;
}

Json Template(const FunctionGroup& group) {
  return KnativeService(group, {.images = {.worker = "w:1", .server = "s:1"}})
      .value()["spec"]["template"];
}

TEST(KnativeService, HasAFixedScaleThatNobodyOutsideReaches) {
  const Json service = KnativeService(Workers(), {.images = {.worker = "w:1"}}).value();
  EXPECT_EQ(service["metadata"]["labels"]["networking.knative.dev/visibility"], "cluster-local");
  const Json& annotations = service["spec"]["template"]["metadata"]["annotations"];
  for (const char* name : {"min-scale", "max-scale", "initial-scale"}) {
    EXPECT_EQ(annotations[std::string("autoscaling.knative.dev/") + name], "4");
  }
  EXPECT_FALSE(service["metadata"].contains("annotations"));  // refused there
}

// A default of config-autoscaler holds where a revision says nothing.
TEST(KnativeService, LeavesNoDefaultOfTheAutoscalerInForceThatPodsDependOn) {
  const Json annotations = Template(Workers())["metadata"]["annotations"];
  EXPECT_EQ(annotations["autoscaling.knative.dev/class"], "kpa.autoscaling.knative.dev");
  EXPECT_EQ(annotations["autoscaling.knative.dev/scale-down-delay"], "0s");
  FunctionGroup one = Workers();
  one.count = 1;
  EXPECT_EQ(Template(one)["metadata"]["annotations"][kInitialScaleAnnotation], "1");
}

TEST(KnativeService, AsksForWhatWasPlanned) {
  const Json container = Template(Workers())["spec"]["containers"][0];
  for (const char* kind : {"requests", "limits"}) {
    EXPECT_EQ(container["resources"][kind]["memory"], "1728Mi");
    EXPECT_EQ(container["resources"][kind]["cpu"], "430m");
  }
  FunctionGroup unlimited = Workers();
  unlimited.milli_cpu = 0;
  EXPECT_FALSE(Template(unlimited)["spec"]["containers"][0]["resources"]["limits"].contains("cpu"));
}

TEST(KnativeService, StatesTheTimesThatDefaultsWouldCut) {
  const Json spec = Template(Workers())["spec"];
  EXPECT_EQ(spec["timeoutSeconds"], 299);
  EXPECT_EQ(spec["responseStartTimeoutSeconds"], 0);
  EXPECT_EQ(spec["containerConcurrency"], 0);
  EXPECT_EQ(spec["containers"][0]["readinessProbe"]["periodSeconds"], 1);
}

TEST(KnativeService, TakesImagesOfTheJobThenOfTheOperator) {
  FunctionGroup group = Workers();
  EXPECT_EQ(Template(group)["spec"]["containers"][0]["image"], "w:1");
  group.program = FunctionProgram::kServer;
  EXPECT_EQ(Template(group)["spec"]["containers"][0]["image"], "s:1");
  group.pods.containers = {{.name = "worker", .image = "mine:1"},
                           {.name = "server", .image = "mine:2"}};
  EXPECT_EQ(Template(group)["spec"]["containers"][0]["image"], "mine:2");
  group.program = FunctionProgram::kWorker;
  EXPECT_EQ(Template(group)["spec"]["containers"][0]["image"], "mine:1");
}

TEST(KnativeService, AWorkerWithAGpuAsksForItAndRunsCudasImage) {
  FunctionGroup group = Workers();
  group.gpu = 1;
  const KnativeOptions options{.images = {.worker = "w:1", .worker_gpu = "w:cuda"}};
  const auto container = [&] {
    return Json(
        KnativeService(group, options).value()["spec"]["template"]["spec"]["containers"][0]);
  };
  EXPECT_EQ(container()["image"], "w:cuda");
  for (const char* kind : {"requests", "limits"}) {
    EXPECT_EQ(container()["resources"][kind]["nvidia.com/gpu"], "1");
  }
  group.pods.containers = {{.name = "worker", .image = "mine:cuda"}};
  EXPECT_EQ(container()["image"], "mine:cuda");
  group.gpu = 0;
  EXPECT_FALSE(container()["resources"]["limits"].contains("nvidia.com/gpu"));
  group.gpu = 1;
  group.pods = {};
  const auto service = KnativeService(group, {.images = {.worker = "w:1"}});
  EXPECT_THAT(service.status().message(), HasSubstr("--worker-gpu-image"));
}

TEST(KnativeService, WithoutAnImageSaysWhereToNameOne) {
  const auto service = KnativeService(Workers(), {});
  EXPECT_EQ(service.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(service.status().message(),
              HasSubstr("set image of the container worker in spec.podTemplate.spec.containers"));
  EXPECT_THAT(service.status().message(), HasSubstr("--worker-image"));
}

TEST(KnativeService, CarriesWhatTheJobSaysOfItsPods) {
  FunctionGroup group = Workers();
  PodTemplate& pods = group.pods;
  pods.image_pull_secrets = {"mine"};
  pods.node_selector = {{"disk", "fast"}};
  pods.tolerations = Json::parse(R"([{"key": "spot", "operator": "Exists"}])");
  pods.priority_class_name = "low";
  pods.runtime_class_name = "gvisor";
  pods.scheduler_name = "volcano";
  pods.topology_spread_constraints = Json::parse(R"([{"maxSkew": 1, "topologyKey": "zone"}])");
  pods.containers = {{.name = "worker", .env = Json::array({{{"name", "A"}, {"value", "b"}}})},
                     {.name = "server", .env = Json::array({{{"name", "B"}, {"value", "b"}}})}};
  const Json spec = Template(group)["spec"];
  EXPECT_EQ(spec["tolerations"], pods.tolerations);
  EXPECT_EQ(spec["priorityClassName"], "low");
  EXPECT_EQ(spec["runtimeClassName"], "gvisor");
  EXPECT_EQ(spec["schedulerName"], "volcano");
  EXPECT_EQ(spec["topologySpreadConstraints"], pods.topology_spread_constraints);
  EXPECT_EQ(spec["imagePullSecrets"][0]["name"], "mine");
  EXPECT_EQ(spec["nodeSelector"]["disk"], "fast");
  EXPECT_EQ(spec["containers"][0]["env"][0]["name"], "A");
  EXPECT_FALSE(spec.contains("affinity"));
  EXPECT_FALSE(spec.contains("volumes"));
  EXPECT_FALSE(spec["containers"][0].contains("volumeMounts"));
  group.program = FunctionProgram::kServer;
  EXPECT_EQ(Template(group)["spec"]["containers"][0]["env"][0]["name"], "B");
}

TEST(KnativeService, ResourcesOfTheJobStandBesideThoseOfThePlan) {
  FunctionGroup group = Workers();
  const Json planned = Template(group)["spec"]["containers"][0]["resources"];
  group.pods.containers = {
      {.name = "worker",
       .resources = Json::parse(R"({"requests": {"ephemeral-storage": "1Gi", "memory": "1"},
                                    "limits": {"nvidia.com/gpu": 1, "cpu": "64"}})")}};
  const Json resources = Template(group)["spec"]["containers"][0]["resources"];
  EXPECT_EQ(resources["requests"]["ephemeral-storage"], "1Gi");
  EXPECT_EQ(resources["limits"]["nvidia.com/gpu"], 1);
  for (const char* amount : {"cpu", "memory"}) {
    EXPECT_EQ(resources["requests"][amount], planned["requests"][amount]) << amount;
    EXPECT_EQ(resources["limits"][amount], planned["limits"][amount]) << amount;
  }
}

// Knative refuses pods with a volume that their container does not mount.
TEST(KnativeService, APodHasTheVolumesThatItsContainerMounts) {
  FunctionGroup group = Workers();
  group.pods.volumes = Json::parse(
      R"([{"name": "scratch", "emptyDir": {}}, {"name": "keys", "secret": {"secretName": "s"}}])");
  group.pods.containers = {
      {.name = "worker",
       .volume_mounts = Json::parse(R"([{"name": "scratch", "mountPath": "/scratch"}])")}};
  const Json worker = Template(group)["spec"];
  ASSERT_THAT(worker["volumes"], SizeIs(1));
  EXPECT_EQ(worker["volumes"][0], group.pods.volumes[0]);
  EXPECT_EQ(worker["containers"][0]["volumeMounts"], group.pods.containers[0].volume_mounts);
  group.program = FunctionProgram::kServer;
  EXPECT_FALSE(Template(group)["spec"].contains("volumes"));
}

TEST(KnativeService, LabelsAndAnnotationsOfTheJobNeverReplaceTheOperatorsOwn) {
  FunctionGroup group = Workers();
  const Json own = Template(group)["metadata"];
  group.pods.labels = {{"team", "vision"}, {kJobUidLabel, "other"}, {kManagedByLabel, "me"}};
  group.pods.annotations = {{"sidecar.istio.io/inject", "false"}, {kMaxScaleAnnotation, "99"}};
  Json metadata = Template(group)["metadata"];
  EXPECT_EQ(metadata["labels"]["team"], "vision");
  EXPECT_EQ(metadata["annotations"]["sidecar.istio.io/inject"], "false");
  metadata["labels"].erase("team");
  metadata["annotations"].erase("sidecar.istio.io/inject");
  EXPECT_EQ(metadata, own);
}

TEST(KnativeService, APodSaysWhereItsFunctionServesTlsAndTheSecretWithWhat) {
  FunctionGroup group = Workers();
  EXPECT_FALSE(Template(group)["metadata"]["labels"].contains("lambdadnn.io/tls-port"));
  group.environment[kTlsCertificateVariable] = "the certificate";
  group.environment[kTlsKeyVariable] = "the private key";
  EXPECT_EQ(Template(group)["metadata"]["labels"]["lambdadnn.io/tls-port"], "8443");
  const Json secret = EnvironmentSecret(group);
  EXPECT_EQ(secret["stringData"]["LAMBDADNN_TLS_CERTIFICATE"], "the certificate");
  EXPECT_EQ(secret["stringData"]["LAMBDADNN_TLS_KEY"], "the private key");
  const Json service = KnativeService(group, {.images = {.worker = "w:1"}}).value();
  EXPECT_EQ(service.dump().find("the private key"), std::string::npos);
  // Knative admits one port of a container; the probes stay where they were.
  EXPECT_THAT(service["spec"]["template"]["spec"]["containers"][0]["ports"], SizeIs(1));
}

TEST(KnativeService, APodSaysWhereOthersOfItsJobConnect) {
  FunctionGroup group = Workers();
  EXPECT_FALSE(Template(group)["metadata"]["labels"].contains("lambdadnn.io/peer-port"));
  group.environment[kPeerPortVariable] = "8444";
  EXPECT_EQ(Template(group)["metadata"]["labels"]["lambdadnn.io/peer-port"], "8444");
}

TEST(KnativeService, MayRunWhereOnlyRestrictedPodsMay) {
  const Json context = Template(Workers())["spec"]["containers"][0]["securityContext"];
  EXPECT_EQ(context["runAsNonRoot"], true);
  EXPECT_EQ(context["allowPrivilegeEscalation"], false);
  EXPECT_EQ(context["capabilities"]["drop"][0], "ALL");
  EXPECT_EQ(context["seccompProfile"]["type"], "RuntimeDefault");
}

TEST(KnativeService, IsOneForEachFunctionThatIsReachedByService) {
  FunctionGroup group = Workers();
  group.addressing = Addressing::kPod;
  EXPECT_EQ(ServicesOf(group), std::vector<FunctionGroup>{group});
  group.addressing = Addressing::kService;
  const std::vector<FunctionGroup> members = ServicesOf(group);
  ASSERT_THAT(members, SizeIs(4));
  std::set<std::string> names;
  for (const FunctionGroup& member : members) {
    const Json service = KnativeService(member, {.images = {.worker = "w:1"}}).value();
    names.insert(service["metadata"]["name"]);
    const Json& meta = service["spec"]["template"]["metadata"];
    EXPECT_EQ(meta["annotations"]["autoscaling.knative.dev/min-scale"], "1");
    EXPECT_EQ(meta["annotations"]["autoscaling.knative.dev/max-scale"], "1");
    EXPECT_EQ(meta["annotations"]["autoscaling.knative.dev/target-burst-capacity"], "-1");
    EXPECT_EQ(meta["labels"][kGroupLabel], "workers-r2");
    EXPECT_EQ(service["metadata"]["labels"][kMemberLabel], meta["labels"][kMemberLabel]);
    EXPECT_EQ(EnvironmentSecret(member)["metadata"]["name"], service["metadata"]["name"]);
    EXPECT_FALSE(meta["labels"][kMemberLabel].get<std::string>().empty());
    // It is the operator's, and no field of a pod.
    EXPECT_FALSE(service["spec"]["template"]["spec"].contains("addressing"));
  }
  EXPECT_THAT(names, testing::ElementsAre("digits-workers-r2-0", "digits-workers-r2-1",
                                          "digits-workers-r2-2", "digits-workers-r2-3"));
}

TEST(KnativeServiceName, FitsAndTellsLongNamesApart) {
  FunctionGroup group = Workers();
  EXPECT_EQ(KnativeServiceName(group), "digits-workers-r2");
  group.job_name = "4digits";
  EXPECT_EQ(KnativeServiceName(group), "j4digits-workers-r2");
  group.job_name = std::string(60, 'a') + "1";
  const std::string one = KnativeServiceName(group);
  group.job_name.back() = '2';
  const std::string two = KnativeServiceName(group);
  EXPECT_THAT(one, SizeIs(52));
  EXPECT_THAT(two, SizeIs(52));
  EXPECT_NE(one, two);
  EXPECT_THAT(one, testing::EndsWith("-workers-r2"));
  group.member = 31;
  EXPECT_THAT(KnativeServiceName(group), SizeIs(52));
  EXPECT_THAT(KnativeServiceName(group), testing::EndsWith("-workers-r2-31"));
}

}  // namespace
}  // namespace lambdadnn
