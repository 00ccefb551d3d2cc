// SPDX-License-Identifier: Apache-2.0
// The custom kind of this operator: its resource type for clients, and its definition (the embedded
// CRD with its rules) for an API server.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/kube/resource_definition.h"

namespace lambdadnn {

// lambdadnn.io/v1alpha1 serverlesstrainingjobs.
const ResourceType& ServerlessTrainingJobType();
ResourceDefinition JobDefinition();

}  // namespace lambdadnn
