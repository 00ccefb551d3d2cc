// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/job_definition.h"

#include "operator/api/job_schema.h"
#include "operator/api/job_validation.h"

namespace lambdadnn {

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
