// SPDX-License-Identifier: Apache-2.0
// A root's update of its shards from merged gradients: checks, mean, clipping, optimizer, push of
// a copy of the new weights. The buffers at the vector's end come as a mean already, which takes
// the place of the values before. Without clipping by global norm each shard goes through at once;
// with it, all shards wait for the norm, for which the roots of spread groups exchange block
// sums.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "trainer_function/checkpoint/checkpoint_io.h"
#include "trainer_function/collective/stop_agreement.h"
#include "trainer_function/collective/tree_node.h"
#include "trainer_function/parameter_server/optimizer.h"
#include "trainer_function/transport/float_pool.h"
#include "trainer_function/transport/role_context.h"
#include "trainer_function/transport/transfer_pool.h"

namespace lambdadnn {

class RootUpdate {
 public:
  // `state` covers the node's shards. All references outlive the object
  // and the jobs in `pushes`; the object may go before these.
  RootUpdate(const RoleContext& context, Transport& transport, StopAgreement& agreement,
             TransferPool& pushes, ParameterState& state, Range shards, int64_t optimizer_start);

  // A shard's sum has come. Pushes its new weights unless a norm is still to come.
  // kInvalidArgument naming the iteration when loss, gradient or buffers are not numbers.
  Status OnMerged(int64_t iteration, MergedShard merged);
  // All shards have come: with a norm, exchanges it and pushes the new weights.
  Status FinishIteration(int64_t iteration);

  // What a gradient of `iteration` proves not to be read again, of one shard's objects that this
  // root has pushed from iteration `oldest` on.
  std::vector<ExchangeObjectName> Garbage(int64_t iteration, int64_t oldest, int shard) const;

 private:
  // Some elements of a shard, few enough to stay in the processor's cache from step to step.
  struct Tile {
    size_t begin = 0;  // in the shard
    std::span<float> gradient;
    std::span<float> buffers;  // that follow it
  };
  // Of a shard, the elements of a gradient; what follows in the shard are buffers.
  size_t GradientElements(const MergedShard& merged) const;
  Tile TileOf(const MergedShard& merged, size_t begin, std::span<float> sum) const;
  // The tile's sum becomes a mean.
  Status Prepare(int64_t iteration, const Tile& tile, double divisor) const;
  // `weights` are the tile's; its shard begins at element `first` of `state_`.
  void Update(const OptimizerStep& step, const Tile& tile, std::span<float> weights, size_t first);
  // Sums up, updates and pushes a shard; each tile is prepared in between.
  Status Publish(int64_t iteration, const MergedShard& merged,
                 const std::function<Status(const Tile&)>& prepare);
  Result<std::vector<double>> ExchangeNorms(int64_t iteration);
  ExchangeObjectName NormsName(int64_t iteration, int shard) const;
  ExchangeObjectName WeightsName(int64_t version, int shard) const;

  const RoleContext& context_;
  const OptimizerConfig& optimizer_;
  Transport& transport_;
  StopAgreement& agreement_;
  TransferPool& pushes_;
  ParameterState& state_;
  const Range shards_;
  const int64_t optimizer_start_;       // iteration at which the optimizer state was zero
  std::vector<MergedShard> held_;       // waiting for the norm
  std::vector<float> sum_;              // of a tile
  std::map<int, FloatPool> published_;  // by shard
};

}  // namespace lambdadnn
