// SPDX-License-Identifier: Apache-2.0
// An API server whose CRD is of another version than this one: it takes anything for a part of a
// job. Header only.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "operator/api/job_schema.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/in_memory_api_server.h"

namespace lambdadnn {

// `part`: "spec" or "status".
inline void TakeAnythingFor(const std::string& part, InMemoryApiServer* server) {
  ResourceDefinition other = JobDefinition();
  auto schema = std::make_shared<StructuralSchema>(JobSchema());
  StructuralSchema anything;
  anything.preserve_unknown_fields = true;
  schema->properties[part] = anything;
  other.schema = std::move(schema);
  other.rules = nullptr;
  server->Define(std::move(other));
}

}  // namespace lambdadnn
