// SPDX-License-Identifier: Apache-2.0
// The custom kind of this operator, as clients name it and as an API server must know it to serve
// it: the embedded CRD with its rules.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/kube/resource_definition.h"

namespace lambdadnn {

// lambdadnn.io/v1alpha1 serverlesstrainingjobs.
const ResourceType& ServerlessTrainingJobType();
ResourceDefinition JobDefinition();

}  // namespace lambdadnn
