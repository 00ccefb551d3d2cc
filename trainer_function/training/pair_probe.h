// SPDX-License-Identifier: Apache-2.0
// Measures the CPU time of an exchange over connections as it runs: two functions that are workers
// and serve (Placement::kWorkers), with all their roles, in this process for some iterations, and a
// step of the training before each exchange. Part of role `profile`.
#pragma once

#include <functional>

#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// A step of the training (none: it is left out), the CPU seconds that it takes alone, and what an
// exchange of the whole vector is known to add to it.
struct ProbedStep {
  std::function<Status()> run;
  double cpu_seconds = 0;
  double disturbed_cpu_seconds = 0;
};

// directPairCpuSeconds(PerByte) of each of the two functions (PairCpu, common/plan/exchange_cpu.h):
// all that an iteration takes beside its step. Nothing where functions have no connections, or
// without a clock of CPU time. `parameters`: of the model. Leaves nothing in the store. On the
// slice's task.
Status MeasurePair(const RoleContext& context, const TrainingEnvironment& environment,
                   const ProbedStep& step, int64_t parameters, SliceRecord* record);

}  // namespace lambdadnn
