// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/knative_service.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "common/base/bytes.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_account.h"

namespace lambdadnn {
namespace {

constexpr size_t kMaxNameBytes = 52;
constexpr int kFunctionPort = 8080;
// Of the function, whose probes have a thread of their own but share its CPU quota.
constexpr int kProbePeriodSeconds = 1;
constexpr int kProbeTimeoutSeconds = 5;

Json Labels(const FunctionGroup& group) {
  Json labels = ChildLabels(group.job_name, group.job_uid);
  labels[kGroupLabel] = group.name;
  if (group.member.has_value()) labels[kMemberLabel] = std::to_string(*group.member);
  return labels;
}

Json Metadata(const FunctionGroup& group) {
  return {{"name", KnativeServiceName(group)},
          {"namespace", group.namespace_name},
          {"labels", Labels(group)},
          {"ownerReferences", OwnerReferences(group.job_name, group.job_uid)}};
}

Json Annotations(const FunctionGroup& group, const KnativeOptions& options) {
  const std::string count = std::to_string(group.count);
  const std::string cpu = std::to_string(options.queue_proxy_milli_cpu) + "m";
  const std::string memory = std::to_string(options.queue_proxy_memory_mib) + "Mi";
  // Whatever config-autoscaler makes the usual: another class knows no initial scale.
  Json annotations = {
      {"autoscaling.knative.dev/class", "kpa.autoscaling.knative.dev"},
      {kMinScaleAnnotation, count},
      {kMaxScaleAnnotation, count},
      {kInitialScaleAnnotation, count},
      {"autoscaling.knative.dev/scale-down-delay", "0s"},
      {"serving.knative.dev/progress-deadline",
       std::to_string(options.progress_deadline_seconds) + "s"},
      {"queue.sidecar.serving.knative.dev/cpu-resource-request", cpu},
      {"queue.sidecar.serving.knative.dev/memory-resource-request", memory},
      {"queue.sidecar.serving.knative.dev/memory-resource-limit", memory},
  };
  // The activator is always on the way: whether it is would else be the autoscaler's choice of the
  // moment, and another gateway must reach the pods then.
  if (group.member.has_value()) annotations["autoscaling.knative.dev/target-burst-capacity"] = "-1";
  if (options.queue_proxy_milli_cpu_limit > 0) {
    annotations["queue.sidecar.serving.knative.dev/cpu-resource-limit"] =
        std::to_string(options.queue_proxy_milli_cpu_limit) + "m";
  }
  return annotations;
}

// Limits and requests are the plan's, so that what was planned is what runs; the job's are of other
// resources.
Json Resources(const FunctionGroup& group, const ContainerTemplate& settings) {
  Json amounts = {{"memory", std::to_string(group.memory_mib) + "Mi"}};
  if (group.milli_cpu > 0) amounts["cpu"] = std::to_string(group.milli_cpu) + "m";
  if (group.gpu > 0) amounts[kGpuResource] = std::to_string(group.gpu);
  Json resources = settings.resources;
  resources["requests"].update(amounts);
  resources["limits"].update(amounts);
  return resources;
}

Json Container(const FunctionGroup& group, const ContainerTemplate& settings,
               const std::string& image) {
  Json environment = settings.env;
  environment.push_back({{"name", "LAMBDADNN_BIND"}, {"value", "0.0.0.0"}});
  Json container = {
      {"name", kFunctionContainer},
      {"image", image},
      {"ports", Json::array({{{"containerPort", kFunctionPort}}})},
      {"env", std::move(environment)},
      {"envFrom", Json::array({{{"secretRef", {{"name", KnativeServiceName(group)}}}}})},
      {"resources", Resources(group, settings)},
      {"readinessProbe",
       {{"httpGet", {{"path", "/readyz"}}},
        {"periodSeconds", kProbePeriodSeconds},
        {"timeoutSeconds", kProbeTimeoutSeconds}}},
      {"securityContext",
       {{"allowPrivilegeEscalation", false},
        {"capabilities", {{"drop", Json::array({"ALL"})}}},
        {"readOnlyRootFilesystem", true},
        {"runAsNonRoot", true},
        {"seccompProfile", {{"type", "RuntimeDefault"}}}}}};
  if (!settings.volume_mounts.empty()) container["volumeMounts"] = settings.volume_mounts;
  return container;
}

// Those that the container mounts: Knative refuses pods with others.
Json MountedVolumes(const PodTemplate& pods, const ContainerTemplate& settings) {
  Json mounted = Json::array();
  std::copy_if(pods.volumes.begin(), pods.volumes.end(), std::back_inserter(mounted),
               [&](const Json& volume) {
                 return std::any_of(settings.volume_mounts.begin(), settings.volume_mounts.end(),
                                    [&](const Json& mount) {
                                      return mount.value("name", "") == volume.value("name", "");
                                    });
               });
  return mounted;
}

template <typename T>
void PutSet(Json* pod, const char* field, const T& value) {
  if (!value.empty()) (*pod)[field] = value;
}

// What the job says of the pod itself.
void PutPodFields(const PodTemplate& pods, const ContainerTemplate& settings, Json* pod) {
  PutSet(pod, "serviceAccountName", pods.service_account_name);
  PutSet(pod, "nodeSelector", pods.node_selector);
  PutSet(pod, "tolerations", pods.tolerations);
  PutSet(pod, "affinity", pods.affinity);
  PutSet(pod, "priorityClassName", pods.priority_class_name);
  PutSet(pod, "runtimeClassName", pods.runtime_class_name);
  PutSet(pod, "schedulerName", pods.scheduler_name);
  PutSet(pod, "topologySpreadConstraints", pods.topology_spread_constraints);
  PutSet(pod, "volumes", MountedVolumes(pods, settings));
}

// The operator's own last: they hold the fixed scale, and pods are found by them.
Json PodMetadata(const FunctionGroup& group, const KnativeOptions& options) {
  Json labels = group.pods.labels;
  Json annotations = group.pods.annotations;
  labels.update(Labels(group));
  if (ServesTls(group)) labels[kTlsPortLabel] = std::to_string(kFunctionTlsPort);
  if (HasPeerChannel(group)) labels[kPeerPortLabel] = std::to_string(kPeerPort);
  annotations.update(Annotations(group, options));
  return {{"labels", std::move(labels)}, {"annotations", std::move(annotations)}};
}

}  // namespace

PodResources SidecarOf(const KnativeOptions& options) {
  return {static_cast<double>(options.queue_proxy_memory_mib),
          static_cast<double>(options.queue_proxy_milli_cpu), 0};
}

std::vector<FunctionGroup> ServicesOf(const FunctionGroup& group) {
  if (group.addressing == Addressing::kPod) return {group};
  return MembersOf(group);
}

std::string KnativeServiceName(const FunctionGroup& group) {
  const std::string own =
      "-" + group.name + (group.member.has_value() ? "-" + std::to_string(*group.member) : "");
  std::string name = group.job_name + own;
  // A Service's name is a DNS label, which begins with a letter; a job's may begin with a digit.
  if (name[0] < 'a' || name[0] > 'z') name = "j" + name;
  if (name.size() <= kMaxNameBytes) return name;
  const std::string suffix = "-" + Hex64(Xxh3(AsBytes(group.job_name))).substr(0, 8) + own;
  return name.substr(0, kMaxNameBytes - suffix.size()) + suffix;
}

Json EnvironmentSecret(const FunctionGroup& group) {
  Json values = Json::object();
  for (const auto& [name, value] : group.environment) values[name] = value;
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", Metadata(group)},
          {"type", "Opaque"},
          {"stringData", std::move(values)}};
}

Result<Json> KnativeService(const FunctionGroup& group, const KnativeOptions& options,
                            const std::string& account) {
  const ContainerTemplate& settings = ContainerOf(group.pods, ProgramName(group.program));
  LDNN_ASSIGN_OR_RETURN(const std::string image, ImageOf(group, options.images));
  const auto timeout = static_cast<int64_t>(std::floor(group.timeout_seconds));
  Json pod = {
      // Knative would queue control requests behind the running slice; the function itself answers
      // 409.
      {"containerConcurrency", 0},
      {"timeoutSeconds", timeout},
      // Explicit, since the default of 300 leaves longer responses without their end.
      {"responseStartTimeoutSeconds", 0},
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"containers", Json::array({Container(group, settings, image)})},
  };
  if (!account.empty()) pod["serviceAccountName"] = account;
  PutPodFields(group.pods, settings, &pod);
  // Of a job's own first: the other image may be the operator's.
  std::vector<std::string> secrets = group.pods.image_pull_secrets;
  secrets.insert(secrets.end(), options.pull_secrets.begin(), options.pull_secrets.end());
  if (!secrets.empty()) pod["imagePullSecrets"] = PullSecretList(secrets);
  Json metadata = Metadata(group);
  metadata["labels"]["networking.knative.dev/visibility"] = "cluster-local";
  return Json{
      {"apiVersion", "serving.knative.dev/v1"},
      {"kind", "Service"},
      {"metadata", std::move(metadata)},
      {"spec",
       {{"template", {{"metadata", PodMetadata(group, options)}, {"spec", std::move(pod)}}}}}};
}

}  // namespace lambdadnn
