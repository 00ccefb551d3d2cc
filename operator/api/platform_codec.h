// SPDX-License-Identifier: Apache-2.0
// The platform: JSON <-> Platform. The same form in a --platform file and in the operator's
// configuration (docs/formats.md). Absent fields keep the defaults of common/plan/workload.h;
// decimals may be written as strings.
#pragma once

#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "common/plan/workload.h"

namespace lambdadnn {

// Problems of type, spelling and range are appended to `errors`, by field path.
Platform DecodePlatform(const Json& json, const std::string& path, std::vector<FieldError>* errors);
// A whole document: the platform itself, or an object with the one field `platform` (Helm values).
// kInvalidArgument with every problem.
Result<Platform> PlatformFromJson(const Json& json);
Json PlatformToJson(const Platform& platform);

}  // namespace lambdadnn
