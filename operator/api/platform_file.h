// SPDX-License-Identifier: Apache-2.0
// Platform files (docs/formats.md). Errors are kInvalidArgument and name the file, the field and
// the next step.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/plan/workload.h"

namespace lambdadnn {

Result<Platform> ReadPlatform(const std::string& file);
Status WritePlatform(const std::string& file, const Platform& platform);

}  // namespace lambdadnn
