// SPDX-License-Identifier: Apache-2.0
// Limits of functions in Knative Serving's ConfigMaps. Pure. An absent key has the default that
// Knative documents; an invalid value is reported in one sentence and ignored.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "common/plan/workload.h"
#include "operator/api/pod_template.h"

namespace lambdadnn {

inline constexpr const char* kKnativeNamespace = "knative-serving";
inline constexpr const char* kKnativeDefaults = "config-defaults";
inline constexpr const char* kKnativeAutoscaler = "config-autoscaler";
inline constexpr const char* kKnativeFeatures = "config-features";

// config-defaults: the longest timeout that a revision may have.
double MaxTimeoutSeconds(const Json& config_map, std::vector<std::string>* unknown);
// config-autoscaler: the most instances that a revision may ask for; 0 = any number.
int MaxScale(const Json& config_map, std::vector<std::string>* unknown);
// "Knative allows a group 8 (max-scale-limit); raise it: kubectl patch …" to `wanted`.
std::string ScaleLimitText(int max_scale, int wanted);
// A sentence with the next step for each setting of Knative that keeps jobs below the platform.
std::vector<std::string> SettingsBelow(const Platform& platform, double max_timeout_seconds,
                                       int max_scale);
// config-features: those that are switched off by name. What is off unless it is switched on, and
// is not named, depends on the version: only Knative itself tells.
std::set<std::string> DisabledFeatures(const Json& config_map);

// A sentence for each field that needs a feature which is off.
std::vector<std::string> RefusedFields(const PodTemplate& pods,
                                       const std::set<std::string>& disabled);
// What to do about a refusal of Knative's webhook, by what it says.
std::string NextStepForRefusal(const std::string& message);

}  // namespace lambdadnn
