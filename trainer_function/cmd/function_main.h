// SPDX-License-Identifier: Apache-2.0
// What lambdadnn-worker and lambdadnn-server share: the environment variables, the HTTP server and
// an orderly end (docs/formats.md, "Environment of a function").
#pragma once

#include <cstdint>
#include <string>

#include "common/base/runtime.h"
#include "common/base/status.h"
#include "trainer_function/server/slice_service.h"

namespace lambdadnn {

// Fills in environment.open_store, open_dataset and pace, serves until SIGTERM or SIGINT, and
// returns the exit code: 0 after an orderly end, 2 for a bad environment, 4 when it cannot listen.
// Call it first in main(): it blocks signals before any thread starts.
int RunFunction(Runtime& runtime, SliceEnvironment environment);

// The object at this URI (file:///folder/name or s3://bucket/name), with the environment's
// settings. kInvalidArgument when it is no such URI or larger than `max_bytes`; errors name it.
Result<std::string> ReadObject(Runtime& runtime, const std::string& uri, uint64_t max_bytes);

}  // namespace lambdadnn
