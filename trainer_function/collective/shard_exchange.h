// SPDX-License-Identifier: Apache-2.0
// A worker's side of the tree reduce over shards: gradient shards up, weight shards down, both
// pipelined. One iteration costs WorkerIterationCost (plan/collective_cost.h): K pushes, K pulls, K
// deletes.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/runtime.h"
#include "common/plan/plan.h"
#include "trainer_function/collective/stop_agreement.h"
#include "trainer_function/transport/float_pool.h"
#include "trainer_function/transport/garbage_collector.h"
#include "trainer_function/transport/phase_meter.h"
#include "trainer_function/transport/transfer_pool.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

class ShardExchange {
 public:
  // All references must outlive the exchange. `phases` is told when it pushes, waits and pulls.
  ShardExchange(Runtime& runtime, Interrupt& interrupt, Transport& transport,
                StopAgreement& agreement, PhaseMeter& phases, const AggregationPlan& aggregation,
                const ParameterBlocks& blocks, int rank);

  // Pushes this worker's gradient of `iteration` (sums over its samples) and fills `weights` with
  // the next version. Returns once every shard has come; this worker's gradient objects are
  // deleted, and the gradient is let go, some time after that.
  Status Exchange(int64_t iteration, const SharedFloats& gradient, int64_t samples, double loss_sum,
                  std::span<float> weights);
  // Fills `weights` with a version that lies in the store.
  Status Join(int64_t version, std::span<float> weights);
  // Waits for what still runs in the background.
  Status Finish();

 private:
  ExchangeObjectName GradientName(int64_t iteration, int shard) const;
  Status PullShard(int64_t version, int shard, std::span<float> weights);

  Transport& transport_;
  StopAgreement& agreement_;
  PhaseMeter& phases_;
  const AggregationPlan aggregation_;
  const ParameterBlocks blocks_;
  const int rank_;
  TransferPool pushes_;
  TransferPool pulls_;
  GarbageCollector garbage_;
};

}  // namespace lambdadnn
