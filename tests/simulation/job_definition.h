// SPDX-License-Identifier: Apache-2.0
// The resources that a simulated API server serves.
#pragma once

#include "operator/kube/resource_definition.h"

namespace lambdadnn::simulation {

// ServerlessTrainingJob with the schema of its CRD, which is read once a process.
const ResourceDefinition& SharedJobDefinition();
// core/v1 secrets.
ResourceDefinition SecretDefinition();

}  // namespace lambdadnn::simulation
