// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/job_definition.h"

#include "operator/controller/dependencies.h"
#include "operator/kinds/serverless_training_job.h"

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
