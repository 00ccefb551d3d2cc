// SPDX-License-Identifier: Apache-2.0
// Measures the CPU time of an exchange as it runs: functions that are workers and serve
// (Placement::kWorkers), one alone, two and four of them. They are in this process, but for the
// second of two, which is the function that this one is told of (`peers` of the slice's request):
// what two functions of one process write for each other is in its caches, and never passes a
// network. Part of role `profile`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "trainer_function/training/probed_hosts.h"
#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

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
  // storePairCpuSeconds(PerByte), with another function also directWorkerCpuSeconds(PerByte)
  // (HostCpu, common/plan/exchange_cpu.h): all that an iteration of a function takes beside its
  // step, of several where functions have connections; and of the pairs disturbedCpuSeconds, which
  // the step takes more than alone, their mean.
  void Record(double step_cpu_seconds, SliceRecord* record) const;

 private:
  // The sums of an exchange's measurements.
  struct Measured {
    HostCpuSeconds sum = {};
    int times = 0;

    void Add(const HostCpuSeconds& seconds);
    HostCpuSeconds Mean() const { return {sum.iteration / times, sum.step / times}; }
  };
  // Of two functions, as ProbedPairs has them.
  using Pairs = std::array<Measured, kProbedPairs>;

  Status MeasureHere(double step_cpu_seconds, const HostExchange& exchange, Measured* measured);
  // kDeadlineExceeded when the other function did not come.
  Status MeasureApart(double step_cpu_seconds, const HostExchange& exchange, Measured* measured);
  // `few_at`: the place of one of few elements; that of many follows.
  void RecordPair(const std::string& name, size_t few_at, const Pairs& pairs,
                  SliceRecord* record) const;

  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  const ProbedStep step_;
  const int64_t parameters_;
  const HostExchange one_;
  const std::array<HostExchange, kProbedPairs> pairs_;
  Measured alone_;
  Pairs here_;
  Pairs apart_;
  Measured four_;
  bool has_partner_;
  int exchanges_apart_ = 0;
};

// Of the function that another one measures with.
class ProbePartner {
 public:
  // `parameters` and `step` as the other one's. All that is given outlives this.
  ProbePartner(const RoleContext& context, const TrainingEnvironment& environment, ProbedStep step,
               int64_t parameters);

  // Takes part in the next exchange, if the other one has begun it: call it between steps. Its
  // errors are the other's affair.
  Status Join(double step_cpu_seconds);

 private:
  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  const ProbedStep step_;
  const std::array<HostExchange, kProbedPairs> pairs_;
  int number_ = 0;
  std::optional<ProbedHosts> next_;
};

}  // namespace lambdadnn
