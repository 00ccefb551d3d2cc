// SPDX-License-Identifier: Apache-2.0
// Measures the cost of exchanging gradients and weights on one function: latency and bandwidth of
// the store, CPU time of pushes, pulls, merges and updates. Part of role `profile`; fills in the
// record's metrics (protocol/slice.h).
//
// Not thread-safe; runs on the slice's task.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer_function/training/probed_exchange.h"
#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/role_context.h"
#include "trainer_function/transport/store_transport.h"

namespace lambdadnn {

class ExchangeProbe {
 public:
  // `gradient` is as long as the model; it is pushed, never changed.
  ExchangeProbe(const RoleContext& context, const TrainingEnvironment& environment,
                std::span<const float> gradient, SliceRecord* record);

  // checkpointSeconds: a checkpoint of `parameters` elements with the optimizer's state, durable;
  // restoreSeconds: reading it back.
  Status MeasureCheckpoint(int64_t parameters);
  // storeRequestSeconds, storeBytesPerSecond, storeDeviationSeconds: of objects that another task
  // waits for, as in training; StoreStreamsMetric of kProbedStreams: bytes a second of so many
  // exchanges at once; push- and pullCpuSeconds(PerByte); missSeconds and missCpuSeconds, where the
  // store gives no hints; and, where functions have no connections, disturbedCpuSeconds: how much
  // longer a step takes with an exchange beside it, as in training, than both alone (they take each
  // other's caches). `step_cpu_seconds` = CPU time of a step.
  Status MeasureTransfers(double step_cpu_seconds, const std::function<Status()>& step);
  // mergeBytesPerSecond, updateCpuSecondsPerByte.
  Status MeasureServer();

 private:
  // MeasureTransfers, while another object lies beside those that are exchanged.
  Status MeasureBesideNeighbour(double step_cpu_seconds, const std::function<Status()>& step);
  ProbedEnds Ends() { return {context_, environment_, transport_, transport_}; }
  std::span<const float> First(int64_t elements) const {
    return std::span<const float>(values_).first(static_cast<size_t>(elements));
  }
  // CPU seconds of an object's share, when several are deleted together.
  Result<double> TimeDiscard();
  Status MeasureMisses();
  // Rounds of so many exchanges at once, until the last object has arrived.
  Result<HandOvers> TimeTogether(int streams, int64_t elements);
  // `least_seconds`: of an exchange of next to nothing.
  Status MeasureStreams(double least_seconds);
  // What an exchange of all elements adds to a step.
  Result<double> TimeWithinSteps(const std::function<Status()>& step);

  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  std::vector<float> values_;
  SliceRecord& record_;
  StoreTransport transport_;
};

}  // namespace lambdadnn
