// SPDX-License-Identifier: Apache-2.0
// Measures the CPU time of an exchange as it runs: functions that are workers and serve
// (Placement::kWorkers), with all their roles, in this process for some iterations, and a step of
// the training before each exchange. Part of role `profile`.
#pragma once

#include <functional>

#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// A step of the training (none: it is left out), and the CPU seconds that it takes alone.
struct ProbedStep {
  std::function<Status()> run;
  double cpu_seconds = 0;
  bool one_thread = true;  // it computes on the calling thread alone
};

// aloneCpuSeconds, directPairCpuSeconds(PerByte), directFourCpuSeconds and, through the store,
// storePairCpuSeconds(PerByte) (HostCpu, common/plan/exchange_cpu.h): all that an iteration of a
// function takes beside its step, of several where functions have connections; and of the pairs
// disturbedCpuSeconds, which the step takes more than alone, their mean. Nothing without a clock of
// CPU time. `parameters`: of the model. Leaves nothing in the store. On the slice's task.
Status MeasureHosts(const RoleContext& context, const TrainingEnvironment& environment,
                    const ProbedStep& step, int64_t parameters, SliceRecord* record);

}  // namespace lambdadnn
