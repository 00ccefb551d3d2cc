// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster_view/knative_config.h"

#include <algorithm>
#include <cmath>

#include "common/base/text.h"
#include "common/json/json_path.h"

namespace lambdadnn {
namespace {

constexpr double kDefaultMaxTimeoutSeconds = 600;
constexpr const char* kMaxTimeoutKey = "max-revision-timeout-seconds";
constexpr const char* kMaxScaleKey = "max-scale-limit";
constexpr const char* kPodTemplate = "spec.podTemplate.";

struct FieldFeature {
  const char* field;  // in `part` of spec.podTemplate
  const char* feature;
  bool (*is_set)(const PodTemplate& pods);
  const char* refusal = nullptr;  // what Knative calls it, where it does not name the field
  const char* part = "spec.";

  std::string Path() const { return std::string(kPodTemplate) + part + field; }
};

template <const char* const& type>
bool HasVolume(const PodTemplate& pods) {
  return std::any_of(pods.volumes.begin(), pods.volumes.end(),
                     [](const Json& volume) { return FindPath(volume, {type}) != nullptr; });
}

bool WritesToClaim(const PodTemplate& pods) {
  return std::any_of(pods.volumes.begin(), pods.volumes.end(), [](const Json& volume) {
    const Json* claim = FindPath(volume, {"persistentVolumeClaim"});
    return claim != nullptr && !IsTrueAt(*claim, {"readOnly"});
  });
}

bool ReadsFieldOfPod(const PodTemplate& pods) {
  for (const ContainerTemplate& container : pods.containers) {
    for (const Json& variable : container.env) {
      for (const char* source : {"fieldRef", "resourceFieldRef"}) {
        if (FindPath(variable, {"valueFrom", source}) != nullptr) return true;
      }
    }
  }
  return false;
}

constexpr const char* kEmptyDir = "emptyDir";
constexpr const char* kClaim = "persistentVolumeClaim";
constexpr const char* kHostPath = "hostPath";
constexpr const char* kCsi = "csi";
constexpr const char* kEphemeral = "ephemeral";

constexpr FieldFeature kFeatures[] = {
    {"nodeSelector", "kubernetes.podspec-nodeselector",
     [](const PodTemplate& pods) { return !pods.node_selector.empty(); }},
    {"tolerations", "kubernetes.podspec-tolerations",
     [](const PodTemplate& pods) { return !pods.tolerations.empty(); }},
    {"affinity", "kubernetes.podspec-affinity",
     [](const PodTemplate& pods) { return !pods.affinity.empty(); }},
    {"priorityClassName", "kubernetes.podspec-priorityclassname",
     [](const PodTemplate& pods) { return !pods.priority_class_name.empty(); }},
    {"runtimeClassName", "kubernetes.podspec-runtimeclassname",
     [](const PodTemplate& pods) { return !pods.runtime_class_name.empty(); }},
    {"schedulerName", "kubernetes.podspec-schedulername",
     [](const PodTemplate& pods) { return !pods.scheduler_name.empty(); }},
    {"topologySpreadConstraints", "kubernetes.podspec-topologyspreadconstraints",
     [](const PodTemplate& pods) { return !pods.topology_spread_constraints.empty(); }},
    {"volumes[].emptyDir", "kubernetes.podspec-volumes-emptydir", HasVolume<kEmptyDir>, "mptyDir"},
    {"volumes[].persistentVolumeClaim without readOnly",
     "kubernetes.podspec-persistent-volume-write", WritesToClaim, "volume write support"},
    {"volumes[].persistentVolumeClaim", "kubernetes.podspec-persistent-volume-claim",
     HasVolume<kClaim>, "ersistent volume claim support"},
    {"volumes[].hostPath", "kubernetes.podspec-volumes-hostpath", HasVolume<kHostPath>, "ostPath"},
    {"volumes[].csi", "kubernetes.podspec-volumes-csi", HasVolume<kCsi>, ".csi"},
    {"volumes[].ephemeral", "kubernetes.podspec-volumes-ephemeral", HasVolume<kEphemeral>,
     ".ephemeral"},
    {"containers[].env[].valueFrom.fieldRef", "kubernetes.podspec-fieldref", ReadsFieldOfPod,
     "ieldRef"},
    {"nodeSelector", "kubernetes.podspec-nodeselector",
     [](const PodTemplate& pods) { return !pods.workers.node_selector.empty(); }, nullptr,
     "workers."},
    {"tolerations", "kubernetes.podspec-tolerations",
     [](const PodTemplate& pods) { return !pods.workers.tolerations.empty(); }, nullptr,
     "workers."},
};

// "" = the key is absent, or no text.
std::string ValueOf(const Json& config_map, const char* key) {
  const Json* value = FindPath(config_map, {"data", key});
  return value != nullptr && value->is_string() ? std::string(Trim(value->get<std::string>())) : "";
}

std::string Unreadable(const char* name, const char* key, const std::string& value,
                       const char* what) {
  return std::string("ConfigMap ") + kKnativeNamespace + "/" + name + ": " + key + " \"" +
         value.substr(0, 40) + "\" is no " + what + " and is not counted";
}

// The command that sets a key of one of Knative's ConfigMaps.
std::string Patch(const char* name, const std::string& key, const std::string& value) {
  return "kubectl patch configmap " + std::string(name) + " -n " + kKnativeNamespace +
         " --type merge -p '{\"data\":{\"" + key + "\":\"" + value + "\"}}'";
}

std::string SwitchOn(const std::string& feature) {
  return Patch(kKnativeFeatures, feature, "enabled");
}

}  // namespace

double MaxTimeoutSeconds(const Json& config_map, std::vector<std::string>* unknown) {
  const std::string value = ValueOf(config_map, kMaxTimeoutKey);
  if (value.empty()) return kDefaultMaxTimeoutSeconds;
  const auto seconds = ParseInteger(value);
  if (seconds.has_value() && *seconds > 0) return static_cast<double>(*seconds);
  unknown->push_back(Unreadable(kKnativeDefaults, kMaxTimeoutKey, value, "number of seconds"));
  return kDefaultMaxTimeoutSeconds;
}

int MaxScale(const Json& config_map, std::vector<std::string>* unknown) {
  constexpr long long kMost = 1'000'000;
  const std::string value = ValueOf(config_map, kMaxScaleKey);
  if (value.empty()) return 0;
  const auto scale = ParseInteger(value);
  if (scale.has_value() && *scale >= 0) return static_cast<int>(std::min(*scale, kMost));
  unknown->push_back(Unreadable(kKnativeAutoscaler, kMaxScaleKey, value, "number of instances"));
  return 0;
}

std::string ScaleLimitText(int max_scale, int wanted) {
  return "Knative allows a group " + std::to_string(max_scale) + " (" + kMaxScaleKey +
         "); raise it: " + Patch(kKnativeAutoscaler, kMaxScaleKey, std::to_string(wanted));
}

std::vector<std::string> SettingsBelow(const Platform& platform, double max_timeout_seconds,
                                       int max_scale) {
  std::vector<std::string> settings;
  if (max_scale > 0 && max_scale < platform.max_functions) {
    settings.push_back("jobs have at most " + std::to_string(max_scale) + " of the platform's " +
                       std::to_string(platform.max_functions) + " functions, since " +
                       ScaleLimitText(max_scale, platform.max_functions));
  }
  if (max_timeout_seconds > 0 && max_timeout_seconds < platform.function_timeout_seconds) {
    const std::string wanted = FormatDouble(std::ceil(platform.function_timeout_seconds));
    settings.push_back("a request ends after " + FormatDouble(max_timeout_seconds) +
                       " s, not the platform's " + wanted + " (" + kMaxTimeoutKey +
                       "); raise it: " + Patch(kKnativeDefaults, kMaxTimeoutKey, wanted));
  }
  return settings;
}

std::set<std::string> DisabledFeatures(const Json& config_map) {
  std::set<std::string> disabled;
  for (const FieldFeature& each : kFeatures) {
    if (LowerCase(ValueOf(config_map, each.feature)) == "disabled") disabled.insert(each.feature);
  }
  return disabled;
}

std::vector<std::string> RefusedFields(const PodTemplate& pods,
                                       const std::set<std::string>& disabled) {
  std::vector<std::string> refused;
  for (const FieldFeature& each : kFeatures) {
    if (!disabled.contains(each.feature) || !each.is_set(pods)) continue;
    refused.push_back(
        each.Path() + " is refused by Knative here, its feature " + each.feature +
        " is off; leave the field out, or have it switched on: " + SwitchOn(each.feature));
  }
  return refused;
}

std::string NextStepForRefusal(const std::string& message) {
  for (const FieldFeature& each : kFeatures) {
    const char* named = each.refusal == nullptr ? each.field : each.refusal;
    if (message.find(named) == std::string::npos) continue;
    return "leave " + each.Path() +
           " out, or have Knative's feature switched on: " + SwitchOn(each.feature);
  }
  if (message.find("imeoutSeconds") != std::string::npos) {
    return std::string(
               "lower the platform's functionTimeoutSeconds, or raise "
               "max-revision-timeout-seconds in ConfigMap ") +
           kKnativeNamespace + "/" + kKnativeDefaults;
  }
  if (message.find("max-scale") != std::string::npos) {
    return "lower spec.functions, or raise " + std::string(kMaxScaleKey) + " in ConfigMap " +
           kKnativeNamespace + "/" + kKnativeAutoscaler;
  }
  if (message.find("containerConcurrency") != std::string::npos) {
    return std::string("set allow-container-concurrency-zero to \"true\" in ConfigMap ") +
           kKnativeNamespace + "/" + kKnativeDefaults;
  }
  if (message.find("could not find the requested resource") != std::string::npos ||
      message.find("404 page not found") != std::string::npos) {
    return "install Knative Serving in this cluster";
  }
  return "change what it names in spec.podTemplate, or enable it in the cluster";
}

}  // namespace lambdadnn
