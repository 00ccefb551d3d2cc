// SPDX-License-Identifier: Apache-2.0
// Measures the CPU time of an exchange as it runs: functions that are workers and serve
// (Placement::kWorkers), one alone, two and four of them, a worker and its server, and a server and
// its three workers. The others are the functions that this one is told of (`peers` of the slice's
// request), as many as there are: what functions of one process write for each other is in its
// caches, and never passes a network. Without them they are in this process. Part of role
// `profile`.
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

  // One measurement of one function, of two and of four; nothing without a clock of CPU time. It
  // begins with how the plan of the request exchanges, and leaves out what has not begun after so
  // many seconds. What else uses a core's caches, and how fast it is clocked, changes within
  // seconds: call it again after other work, which measures nothing if the first one took long.
  // `step_cpu_seconds`: of a step alone, where it cannot be measured here.
  Status Measure(double step_cpu_seconds, double seconds);

  // Means of the measurements:
  // aloneCpuSeconds, directPairCpuSeconds(PerByte), directFourCpuSeconds and, through the store,
  // storePairCpuSeconds(PerByte), with another function also
  // {direct,store}{Worker,Server}CpuSeconds(PerByte), with three directFourCpuSecondsPerByte and
  // {direct,store}ServerOfThreeCpuSeconds(PerByte) (HostCpu, common/plan/exchange_cpu.h): all that
  // an iteration of a function takes beside its step, of several where functions have connections;
  // and of one over connections and one through the store disturbedCpuSeconds, which the step takes
  // more than alone, their mean. Of two over connections, without stalls of a quota,
  // directPairWaitSeconds (DirectTransfer::pair_wait_seconds).
  void Record(double step_cpu_seconds, SliceRecord* record) const;

 private:
  // The sums of an exchange's measurements.
  struct Measured {
    HostCpuSeconds sum = {};
    int times = 0;
    double wait_seconds = 0;
    int waits = 0;  // of the times, those without a quota's stalls

    void Add(const HostMeasurement& measurement);
    HostCpuSeconds Mean() const { return {sum.iteration / times, sum.step / times}; }
  };
  // As ProbedExchanges has them.
  using Exchanges = std::array<Measured, kProbedExchanges>;

  bool IsTimeLeft() const { return context_.runtime.clock.Now() < until_; }
  Status MeasureRound(double step_cpu_seconds);
  Status MeasureHere(double step_cpu_seconds, const HostExchange& exchange, Measured* measured);
  // The exchange of this place in the order.
  Status MeasureApart(double step_cpu_seconds, size_t place);
  void RecordDisturbance(double step_cpu_seconds, SliceRecord* record) const;
  void RecordWait(SliceRecord* record) const;
  // `few_at`: the place of one of few elements; that of many follows.
  void RecordBoth(const std::string& name, size_t few_at, const Exchanges& measured,
                  SliceRecord* record) const;

  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  const ProbedStep step_;
  const int64_t parameters_;
  const HostExchange one_;
  const std::array<HostExchange, kProbedExchanges> exchanges_;
  const std::array<size_t, kProbedExchanges> order_;
  Measured alone_;
  Exchanges here_;
  Exchanges apart_;
  int functions_;  // that take part, this one included
  int rounds_ = 0;
  Instant until_{};
  bool took_long_ = false;
};

// Of a function that another one measures with.
class ProbePartner {
 public:
  // Whether it takes part in any exchange.
  static bool Takes(const TrainingEnvironment& environment, const SliceRequest& request);

  // `parameters` and `step` as the other one's. All that is given outlives this.
  ProbePartner(const RoleContext& context, const TrainingEnvironment& environment, ProbedStep step,
               int64_t parameters);

  // Takes part in the next exchange, if all the others have begun it: call it between steps. Its
  // errors are the affair of the one that measures.
  Status Join(double step_cpu_seconds);

 private:
  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  const ProbedStep step_;
  const std::array<HostExchange, kProbedExchanges> exchanges_;
  const std::array<size_t, kProbedExchanges> order_;
  const int functions_;  // that take part, this one included
  int number_ = 0;
  std::optional<ProbedHosts> next_;
};

}  // namespace lambdadnn
