// SPDX-License-Identifier: Apache-2.0
// A runtime of this machine's time, threads and chance, for tests that cannot do with virtual ones.
#pragma once

#include "common/base/runtime.h"

namespace lambdadnn {

struct SystemParts {
  SystemClock system_clock;
  ThreadExecutor system_executor;
  SystemRandom system_random;
};

// Its base classes are there before the references to them, and until after these.
class SystemRuntime final : private SystemParts, public Runtime {
 public:
  SystemRuntime() : Runtime{system_clock, system_executor, system_random} {}
};

}  // namespace lambdadnn
