// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/job_definition.h"

#include "operator/controller/dependencies.h"
#include "operator/kube/job_definition.h"

namespace lambdadnn::simulation {

const ResourceDefinition& SharedJobDefinition() {
  static const ResourceDefinition definition = JobDefinition();
  return definition;
}

ResourceDefinition SecretDefinition() {
  ResourceDefinition definition;
  definition.type = SecretType();
  return definition;
}

}  // namespace lambdadnn::simulation
