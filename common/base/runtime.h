// SPDX-License-Identifier: Apache-2.0
// Clock, randomness and executor in one parameter. Passed by reference; outlives everything that
// holds it.
#pragma once

#include "common/base/clock.h"
#include "common/base/executor.h"
#include "common/base/random.h"

namespace lambdadnn {

struct Runtime {
  Clock& clock;
  Executor& executor;
  Random& random;
};

}  // namespace lambdadnn
