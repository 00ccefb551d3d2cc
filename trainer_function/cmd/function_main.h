// SPDX-License-Identifier: Apache-2.0
// What lambdadnn-worker and lambdadnn-server share: the environment variables, the HTTP server and
// an orderly end (docs/formats.md, "Environment of a function").
#pragma once

#include "common/base/runtime.h"
#include "trainer_function/server/slice_service.h"

namespace lambdadnn {

// Fills in environment.open_store, open_dataset and pace, serves until SIGTERM or SIGINT, and
// returns the exit code: 0 after an orderly end, 2 for a bad environment, 4 when it cannot listen.
// Call it first in main(): it blocks signals before any thread starts.
int RunFunction(Runtime& runtime, SliceEnvironment environment);

}  // namespace lambdadnn
