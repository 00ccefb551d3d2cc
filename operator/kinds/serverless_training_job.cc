// SPDX-License-Identifier: Apache-2.0
#include "operator/kinds/serverless_training_job.h"

#include "operator/api/job_schema.h"
#include "operator/api/job_validation.h"

namespace lambdadnn {

const ResourceType& ServerlessTrainingJobType() {
  static const ResourceType kType{"lambdadnn.io", "v1alpha1", "serverlesstrainingjobs",
                                  "ServerlessTrainingJob"};
  return kType;
}

ResourceDefinition JobDefinition() {
  // The schema outlives the program's last server: no copy.
  ResourceDefinition definition;
  definition.type = ServerlessTrainingJobType();
  definition.has_status = true;
  definition.schema =
      std::shared_ptr<const StructuralSchema>(&JobSchema(), [](const StructuralSchema*) {});
  definition.rules = CheckJobRules;
  return definition;
}

}  // namespace lambdadnn
