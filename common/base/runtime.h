// SPDX-License-Identifier: Apache-2.0
// Time, chance and concurrency in one parameter. Passed by reference and outlives all who hold it.
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
