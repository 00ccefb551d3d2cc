// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster_view/knative_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "common/base/text.h"
#include "common/json/json_path.h"

namespace lambdadnn {
namespace {

constexpr double kDefaultMaxTimeoutSeconds = 600;
constexpr const char* kMaxTimeoutKey = "max-revision-timeout-seconds";
constexpr const char* kMaxScaleKey = "max-scale-limit";

struct FieldFeature {
  const char* field;
  const char* feature;
};

constexpr std::array<FieldFeature, 4> kFeatures = {{
    {"nodeSelector", "kubernetes.podspec-nodeselector"},
    {"tolerations", "kubernetes.podspec-tolerations"},
    {"affinity", "kubernetes.podspec-affinity"},
    {"priorityClassName", "kubernetes.podspec-priorityclassname"},
}};

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
  for (const auto& [field, feature] : kFeatures) {
    std::string value = ValueOf(config_map, feature);
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    if (value == "disabled") disabled.insert(feature);
  }
  return disabled;
}

std::string FeatureOfField(const std::string& field) {
  for (const auto& [name, feature] : kFeatures) {
    if (field == name) return feature;
  }
  return "";
}

std::vector<std::string> RefusedFields(const Json& runtime, const std::set<std::string>& disabled) {
  std::vector<std::string> refused;
  if (!runtime.is_object()) return refused;
  for (const auto& [field, feature] : kFeatures) {
    if (!runtime.contains(field) || !disabled.contains(feature)) continue;
    refused.push_back(std::string("spec.runtime.") + field +
                      " is refused by Knative here, its feature " + feature +
                      " is off; leave the field out, or have it switched on: " + SwitchOn(feature));
  }
  return refused;
}

std::string NextStepForRefusal(const std::string& message) {
  for (const auto& [field, feature] : kFeatures) {
    if (message.find(field) == std::string::npos) continue;
    return std::string("leave spec.runtime.") + field +
           " out, or have Knative's feature switched on: " + SwitchOn(feature);
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
  return "change what it names in spec.runtime, or enable it in the cluster";
}

}  // namespace lambdadnn
