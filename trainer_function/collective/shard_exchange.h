// SPDX-License-Identifier: Apache-2.0
// A worker's side of the tree reduce over shards: gradient shards up, weight shards down, both
// pipelined. One iteration costs WorkerIterationCost (plan/collective_cost.h): K pushes, K pulls, K
// deletes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/runtime.h"
#include "common/plan/plan.h"
#include "trainer_function/collective/stop_agreement.h"
#include "trainer_function/transport/float_pool.h"
#include "trainer_function/transport/garbage_collector.h"
#include "trainer_function/transport/phase_meter.h"
#include "trainer_function/transport/transfer_pool.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// A version of the weights, by shard, as it came: in what order the vector has them.
using WeightShards = std::vector<ReceivedObject>;

class ShardExchange {
 public:
  // All references must outlive the exchange. `phases` is told when it pushes, waits and pulls.
  ShardExchange(Runtime& runtime, Interrupt& interrupt, Transport& transport,
                StopAgreement& agreement, PhaseMeter& phases, const AggregationPlan& aggregation,
                const ParameterBlocks& blocks, int rank);

  // Pushes this worker's gradient of `iteration` (sums over its samples). Returns the next version
  // of the weights once every shard of it has come; this worker's gradient objects are deleted, and
  // the gradient is let go, some time after that.
  Result<WeightShards> Exchange(int64_t iteration, const SharedFloats& gradient, int64_t samples,
                                double loss_sum);
  // A version that lies in the store.
  Result<WeightShards> Join(int64_t version);
  // Waits for what still runs in the background.
  Status Finish();

 private:
  ExchangeObjectName GradientName(int64_t iteration, int shard) const;
  // Shared with the pulls, which go on for a while when one of them fails.
  struct Arriving;
  void BeginPull(int64_t version, int shard, const std::shared_ptr<Arriving>& arriving);
  Status PullShard(int64_t version, int shard, ReceivedObject* received);

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
