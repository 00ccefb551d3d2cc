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
#include "trainer_function/transport/transfer_pool.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

class ShardExchange {
 public:
  // All references must outlive the exchange.
  ShardExchange(Runtime& runtime, Interrupt& interrupt, Transport& transport,
                StopAgreement& agreement, const AggregationPlan& aggregation,
                const ParameterBlocks& blocks, int rank);

  // Pushes this worker's gradient of `iteration` (sums over its samples) and fills `weights` with
  // the next version. Returns once every shard has come and this worker's gradient objects are
  // deleted or about to be.
  Status Exchange(int64_t iteration, std::span<const float> gradient, int64_t samples,
                  double loss_sum, std::span<float> weights);
  // Waits for what still runs in the background.
  Status Finish();
  // Total time spent waiting for the first weights of an iteration, in seconds.
  double wait_seconds() const { return wait_seconds_; }

 private:
  ExchangeObjectName GradientName(int64_t iteration, int shard) const;
  Status PullShard(int64_t version, int shard, std::span<float> weights);

  Runtime& runtime_;
  Transport& transport_;
  StopAgreement& agreement_;
  const AggregationPlan aggregation_;
  const ParameterBlocks blocks_;
  const int rank_;
  double wait_seconds_ = 0;
  TransferPool pushes_;
  TransferPool pulls_;
};

}  // namespace lambdadnn
