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

RequestCount Written(int64_t bytes) { return {.puts = 1, .deletes = 1, .bytes_in = bytes}; }
RequestCount Read(int64_t bytes) { return {.gets = 1, .bytes_out = bytes}; }

// The worker's own part.
RequestCount OfWorker(const ExchangeShape& shape, int rank) {
  const AggregationPlan& plan = shape.aggregation;
  RequestCount cost;
  for (int shard = 0; shard < plan.shards; ++shard) {
    const int64_t bytes = ShardObjectBytes(shape, shard);
    if (HostOfNode(plan, 1, ParentOf(plan, 0, rank), shard) != rank) cost += Written(bytes);
    if (HostOfNode(plan, plan.server_layers(), 0, shard) != rank) cost += Read(bytes);
  }
  return cost;
}

// Norms of the shards that a root in the function of worker `rank` has, and those of the others.
RequestCount OfNorms(const ExchangeShape& shape, int group, int rank) {
  const AggregationPlan& plan = shape.aggregation;
  const auto root_of = [&](int of_group) {
    return HostOf(plan, {plan.server_layers(), 0, of_group});
  };
  bool read_elsewhere = false;
  for (int other = 0; other < plan.spread; ++other) {
    read_elsewhere = read_elsewhere || root_of(other) != rank;
  }
  RequestCount cost;
  for (int shard = 0; shard < plan.shards; ++shard) {
    const int64_t bytes = NormObjectBytes(shape, shard);
    const int owner = GroupOfShard(plan, shard);
    if (owner == group) {
      if (read_elsewhere) cost += Written(bytes);
    } else if (root_of(owner) != rank) {
      cost += Read(bytes);
    }
  }
  return cost;
}

// A server's in the function of worker `rank`.
RequestCount OfHosted(const ExchangeShape& shape, const ServerPosition& position, int rank) {
  const AggregationPlan& plan = shape.aggregation;
  const bool is_root = position.level == plan.server_layers();
  const Range children = Children(plan, position.level, position.index);
  const Range own = GroupShards(plan, position.group);
  RequestCount cost;
  for (auto shard = static_cast<int>(own.begin); shard < own.end; ++shard) {
    const int64_t bytes = ShardObjectBytes(shape, shard);
    for (auto child = static_cast<int>(children.begin); child < children.end; ++child) {
      if (HostOfNode(plan, position.level - 1, child, shard) != rank) cost += Read(bytes);
    }
    const bool read_elsewhere =
        is_root ? plan.workers() > 1
                : HostOfNode(plan, position.level + 1,
                             ParentOf(plan, position.level, position.index), shard) != rank;
    if (read_elsewhere) cost += Written(bytes);
  }
  if (is_root && shape.clip_by_global_norm) cost += OfNorms(shape, position.group, rank);
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
  if (shape.aggregation.transport == TransportKind::kDirect) return {};
  const int64_t shards = shape.aggregation.shards;
  const int64_t bytes = shape.parameters * kFloatBytes + shards * kExchangeHeaderBytes;
  return {.puts = shards, .gets = shards, .deletes = shards, .bytes_in = bytes, .bytes_out = bytes};
}

RequestCount ServerIterationCost(const ExchangeShape& shape, const ServerPosition& position) {
  const AggregationPlan& plan = shape.aggregation;
  if (plan.transport == TransportKind::kDirect) return {};
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

RequestCount HostIterationCost(const ExchangeShape& shape, int rank) {
  if (shape.aggregation.transport == TransportKind::kDirect) return {};
  RequestCount cost = OfWorker(shape, rank);
  for (const ServerPosition& position : ServersOn(shape.aggregation, rank)) {
    cost += OfHosted(shape, position, rank);
  }
  return cost;
}

namespace {

// The edges between servers whose ends are in different functions, over all groups: a shard each
// of every group.
int64_t ServerEdgesBetweenHosts(const AggregationPlan& plan) {
  int64_t edges = 0;
  for (int server = 0; server < plan.servers(); ++server) {
    const ServerPosition position = ServerAt(plan, server);
    if (position.level == plan.server_layers()) continue;
    const ServerPosition parent = {position.level + 1,
                                   ParentOf(plan, position.level, position.index), position.group};
    if (HostOf(plan, position) != HostOf(plan, parent)) ++edges;
  }
  return edges;
}

RequestCount CostOfAllHosts(const ExchangeShape& shape) {
  const AggregationPlan& plan = shape.aggregation;
  const int64_t vector_bytes = shape.parameters * kFloatBytes + plan.shards * kExchangeHeaderBytes;
  // Each leaf is beside one of its workers; the weights are written where another function is.
  const int64_t gradients = plan.workers() - plan.Width(1);
  const int64_t weights = plan.workers() > 1 ? 1 : 0;
  const int64_t reads = gradients + plan.workers() - 1;
  RequestCount total{.puts = (gradients + weights) * plan.shards,
                     .gets = reads * plan.shards,
                     .deletes = (gradients + weights) * plan.shards,
                     .bytes_in = (gradients + weights) * vector_bytes,
                     .bytes_out = reads * vector_bytes};
  if (plan.server_layers() > 1) {
    // Groups have as many shards, and so have edges; bytes differ by a block.
    const int64_t edges = ServerEdgesBetweenHosts(plan);
    const int64_t objects = edges * (plan.shards / plan.spread);
    const int64_t bytes = edges * vector_bytes / plan.spread;
    total += {.puts = objects,
              .gets = objects,
              .deletes = objects,
              .bytes_in = bytes,
              .bytes_out = bytes};
  }
  if (shape.clip_by_global_norm) {
    for (int group = 0; group < plan.spread; ++group) {
      total += OfNorms(shape, group, HostOf(plan, {plan.server_layers(), 0, group}));
    }
  }
  return total;
}

}  // namespace

RequestCount IterationCostWithout(
    const ExchangeShape& shape,
    const std::function<bool(const ExchangeRole& writer, const ExchangeRole& reader)>& down) {
  const AggregationPlan& plan = shape.aggregation;
  RequestCount cost;
  const auto add = [&](const ExchangeObject& object, int64_t bytes) {
    const ExchangeRole writer = FunctionOf(plan, WriterOf(plan, object));
    int64_t readers = 0;
    for (const ExchangeRole& role : ReadersOf(plan, object)) {
      const ExchangeRole reader = FunctionOf(plan, role);
      if (reader != writer && down(writer, reader)) ++readers;
    }
    if (readers == 0) return;
    cost += Written(bytes);
    for (; readers > 0; --readers) cost += Read(bytes);
  };
  const int root = plan.server_layers();
  for (int shard = 0; shard < plan.shards; ++shard) {
    const int64_t bytes = ShardObjectBytes(shape, shard);
    for (int layer = 0; layer < root; ++layer) {
      for (int index = 0; index < plan.Width(layer); ++index) {
        add({ExchangeKind::kGradient, layer, shard, index}, bytes);
      }
    }
    add({ExchangeKind::kWeights, root, shard, 0}, bytes);
    if (shape.clip_by_global_norm) {
      add({ExchangeKind::kNorms, root, shard, 0}, NormObjectBytes(shape, shard));
    }
  }
  return cost;
}

// Of dedicated servers the same sums without visiting every function: in a tree each node but the
// root is one edge, and every shard crosses every edge once.
RequestCount IterationCost(const ExchangeShape& shape) {
  const AggregationPlan& plan = shape.aggregation;
  if (plan.transport == TransportKind::kDirect) return {};
  if (plan.placement == Placement::kWorkers) return CostOfAllHosts(shape);
  const int64_t nodes = plan.servers() / plan.spread;
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
