// SPDX-License-Identifier: Apache-2.0
// Definition of a kind for an API server: its names, schema and rules.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/json/json_reader.h"
#include "common/json/structural_schema.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

struct ResourceDefinition {
  ResourceType type;
  bool has_status = false;  // the status subresource
  // Without one, any fields go.
  std::shared_ptr<const StructuralSchema> schema;
  // The rules between fields (a CRD's CEL); `old` is null for a create.
  std::function<void(const Json& object, const Json* old, std::vector<FieldError>* errors)> rules;
  // Objects older than this are deleted when another is created; 0 = never.
  Duration time_to_live{0};
};

// From a CustomResourceDefinition (apiextensions.k8s.io/v1) with exactly one version, as JSON. Its
// x-kubernetes-validations are not interpreted: set `rules`.
Result<ResourceDefinition> ReadResourceDefinition(const Json& crd);
// events.k8s.io/v1 events, kept for an hour as a cluster does.
ResourceDefinition EventDefinition();

}  // namespace lambdadnn
