// SPDX-License-Identifier: Apache-2.0
// Measures the CPU time of an exchange as it runs: functions that are workers and serve
// (Placement::kWorkers), with all their roles, in this process for some iterations, and a step of
// the training before each exchange. Part of role `profile`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// A step of the training (none: it is left out), and whether it computes on the calling thread
// alone.
struct ProbedStep {
  std::function<Status()> run;
  bool one_thread = true;
};

// CPU seconds of a function, means of its iterations.
struct HostCpuSeconds {
  double iteration = 0;  // with its step
  double step = 0;
};

// On the slice's task; leaves nothing in the store.
class HostProbes {
 public:
  // `parameters`: of the model. What is given outlives this.
  HostProbes(const RoleContext& context, const TrainingEnvironment& environment, ProbedStep step,
             int64_t parameters);

  // One measurement of one function, of two and of four, which takes some seconds in all; nothing
  // without a clock of CPU time. What else uses a core's caches, and how fast it is clocked,
  // changes within seconds: call it again after other work. `step_cpu_seconds`: of a step alone,
  // where it cannot be measured here.
  Status Measure(double step_cpu_seconds);

  // Means of the measurements:
  // aloneCpuSeconds, directPairCpuSeconds(PerByte), directFourCpuSeconds and, through the store,
  // storePairCpuSeconds(PerByte) (HostCpu, common/plan/exchange_cpu.h): all that an iteration of a
  // function takes beside its step, of several where functions have connections; and of the pairs
  // disturbedCpuSeconds, which the step takes more than alone, their mean.
  void Record(double step_cpu_seconds, SliceRecord* record) const;

 private:
  // Functions that exchange so many elements in one way, and the sums of its measurements.
  struct Exchange {
    int functions = 1;
    TransportKind transport = TransportKind::kObjectStore;
    int64_t elements = 1;
    HostCpuSeconds sum = {};
    int measured = 0;

    HostCpuSeconds Mean() const { return {sum.iteration / measured, sum.step / measured}; }
  };
  // Of two functions, of few elements and of many.
  struct Pair {
    Exchange few;
    Exchange many;
  };
  Status MeasureOne(double step_cpu_seconds, Exchange* exchange);
  // `elements`: of one function alone. Fewer than some, of two, cost too little to be seen.
  static Pair PairThrough(TransportKind transport, int64_t elements);
  static void RecordPair(const std::string& name, const Pair& pair, SliceRecord* record);

  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  const ProbedStep step_;
  const int64_t parameters_;
  Exchange alone_;
  Pair direct_pair_;
  Pair store_pair_;
  Exchange four_;
};

}  // namespace lambdadnn
