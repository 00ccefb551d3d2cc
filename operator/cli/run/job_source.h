// SPDX-License-Identifier: Apache-2.0
// Platform files, and the kind of a run's API server. Errors are kInvalidArgument and name the
// file, the field and the next step.
#pragma once

#include <string>

#include "common/json/json_reader.h"
#include "common/plan/workload.h"
#include "operator/kube/resource_definition.h"

namespace lambdadnn {

// What the API server of a run knows of jobs.
Result<ResourceDefinition> JobDefinition();

Result<Platform> ReadPlatform(const std::string& file);
Status WritePlatform(const std::string& file, const Platform& platform);

}  // namespace lambdadnn
