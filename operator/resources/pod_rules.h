// SPDX-License-Identifier: Apache-2.0
// What a job may put into its pods through spec.podTemplate, as the administrator lists it. Pure.
//
// The chart's ValidatingAdmissionPolicy says the same with the same sentences, in CEL
// (charts/lambdadnn-operator/templates/_pod_rules.tpl); tests/data/pod_rules.yaml holds both to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/json/json_reader.h"
#include "operator/api/pod_template.h"

namespace lambdadnn {

struct PodRules {
  // Absent = every name, empty = none. An entry that ends in '*' admits all names that begin so.
  using Names = std::optional<std::vector<std::string>>;

  Names images = {};
  Names service_accounts = {};
  Names priority_classes = {};
  Names toleration_keys = {};
  Names node_labels = {};  // keys, in nodeSelector and affinity.nodeAffinity
  // Beside the job's own, in affinity.podAffinity and podAntiAffinity; a selector needs "*".
  Names affinity_namespaces = {};
  Names secrets = {};  // in env[].valueFrom and volumes; those that only pull images are free
  Names runtime_classes = {};
  Names schedulers = {};
  // "emptyDir", …, and what a projected volume is made of ("serviceAccountToken").
  Names volume_types = {};
  Names resources = {};  // in containers[].resources
};

// From a file whose fields are all optional, e.g.
//   images: [registry.example/team/*]
//   priorityClasses: []
// kInvalidArgument names the invalid field.
Result<PodRules> PodRulesFromJson(const Json& json);
Result<PodRules> ReadPodRules(const std::string& file);

// Free parts may have any shape: one that is not understood is refused where there is a list.
// kPermissionDenied names the field, what is allowed and whom to ask. `job_namespace`: the job's
// own.
Status CheckPods(const PodRules& rules, const PodTemplate& pods, std::string_view job_namespace);

}  // namespace lambdadnn
