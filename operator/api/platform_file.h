// SPDX-License-Identifier: Apache-2.0
// Platform files and price books (docs/formats.md). Errors are kInvalidArgument and name the file,
// the field and the next step.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/plan/workload.h"

namespace lambdadnn {

// Refused where its prices do not count at `now`.
Result<Platform> ReadPlatform(const std::string& file, WallTime now);
Result<Platform::Prices> ReadPriceBook(const std::string& file, WallTime now);

// What a run keeps beside its state: it goes on at the prices that it began with, also where these
// no longer count.
Result<Platform> ReadSavedPlatform(const std::string& file);
Status WritePlatform(const std::string& file, const Platform& platform);

}  // namespace lambdadnn
