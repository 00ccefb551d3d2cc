// SPDX-License-Identifier: Apache-2.0
#include "common/plan/collective_cost.h"

#include "common/plan/geometry.h"

namespace lambdadnn {
namespace {

int64_t ShardObjectBytes(const ExchangeShape& shape, int shard) {
  const Range elements = ShardRange(shape.blocks(), shape.aggregation.shards, shard);
  return elements.size() * kFloatBytes + kExchangeHeaderBytes;
}

int64_t NormObjectBytes(const ExchangeShape& shape, int shard) {
  const Range elements = ShardRange(shape.blocks(), shape.aggregation.shards, shard);
  return BlockCount(elements.size(), shape.block_elements) * kNormBytes + kExchangeHeaderBytes;
}

// The exchange of block norms between the roots of the spread groups.
RequestCount NormExchangeCost(const ExchangeShape& shape, int group) {
  const Range own = GroupShards(shape.aggregation, group);
  RequestCount cost;
  for (int shard = 0; shard < shape.aggregation.shards; ++shard) {
    const int64_t bytes = NormObjectBytes(shape, shard);
    if (shard >= own.begin && shard < own.end) {
      cost.puts += 1;
      cost.deletes += 1;
      cost.bytes_in += bytes;
    } else {
      cost.gets += 1;
      cost.bytes_out += bytes;
    }
  }
  return cost;
}

}  // namespace

RequestCount& RequestCount::operator+=(const RequestCount& other) {
  puts += other.puts;
  gets += other.gets;
  deletes += other.deletes;
  bytes_in += other.bytes_in;
  bytes_out += other.bytes_out;
  return *this;
}

RequestCount WorkerIterationCost(const ExchangeShape& shape) {
  const int64_t shards = shape.aggregation.shards;
  const int64_t bytes = shape.parameters * kFloatBytes + shards * kExchangeHeaderBytes;
  return {.puts = shards, .gets = shards, .deletes = shards, .bytes_in = bytes, .bytes_out = bytes};
}

RequestCount ServerIterationCost(const ExchangeShape& shape, const ServerPosition& position) {
  const AggregationPlan& plan = shape.aggregation;
  const int64_t children = Children(plan, position.level, position.index).size();
  const Range own = GroupShards(plan, position.group);
  RequestCount cost;
  for (int64_t shard = own.begin; shard < own.end; ++shard) {
    const int64_t bytes = ShardObjectBytes(shape, static_cast<int>(shard));
    cost += {.puts = 1,
             .gets = children,
             .deletes = 1,
             .bytes_in = bytes,
             .bytes_out = children * bytes};
  }
  if (shape.clip_by_global_norm && position.level == plan.server_layers()) {
    cost += NormExchangeCost(shape, position.group);
  }
  return cost;
}

// The same sums without visiting every function: in a tree each node but the root is one edge, and
// every shard crosses every edge once.
RequestCount IterationCost(const ExchangeShape& shape) {
  const AggregationPlan& plan = shape.aggregation;
  const int64_t nodes = plan.server_functions() / plan.spread;
  const int64_t workers = plan.workers();
  const int64_t writes = workers + nodes;               // of each shard
  const int64_t reads = workers + nodes - 1 + workers;  // gradients, and weights by all workers
  const int64_t vector_bytes = shape.parameters * kFloatBytes + plan.shards * kExchangeHeaderBytes;
  RequestCount total{.puts = writes * plan.shards,
                     .gets = reads * plan.shards,
                     .deletes = writes * plan.shards,
                     .bytes_in = writes * vector_bytes,
                     .bytes_out = reads * vector_bytes};
  if (shape.clip_by_global_norm) {
    for (int group = 0; group < plan.spread; ++group) total += NormExchangeCost(shape, group);
  }
  return total;
}

}  // namespace lambdadnn
