// SPDX-License-Identifier: Apache-2.0
// Which rank owns what: shards of the flat parameter vector, children of tree nodes, shards of
// spread groups, virtual partitions of workers. Pure integer functions: every function of a job
// computes the same answer from the plan, without communication.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/plan.h"

namespace lambdadnn {

// Parameters, gradients and optimizer state travel as float32; a norm is one float64 sum of squares
// a block.
inline constexpr int64_t kFloatBytes = 4;
inline constexpr int64_t kNormBytes = 8;

// Half-open range of integers.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

// ceil(elements / block_elements).
int64_t BlockCount(int64_t elements, int64_t block_elements);

// Elements of the flat vector of a model: its parameters and, from a block's edge on, its buffers.
int64_t VectorElements(int64_t parameters, int64_t buffers, int64_t block_elements);

// Part `index` of `total` cut into `parts` contiguous pieces whose sizes differ by at most one:
// [floor(index x total / parts), floor((index + 1) x total / parts)).
Range EvenPart(int64_t total, int64_t parts, int64_t index);

// Element range of shard k of K; edges lie on blocks. Requires K <= the number of blocks.
Range ShardRange(const ParameterBlocks& blocks, int shards, int shard);

// The shards that spread group g of s serves: EvenPart(K, s, g).
Range GroupShards(const AggregationPlan& aggregation, int group);

// Of one of the K shards: the spread group that serves it.
int GroupOfShard(const AggregationPlan& aggregation, int shard);

// A server: `level` 1..L (L = root), `index` in [0, Width(level)), `group` in
// [0, spread).
struct ServerPosition {
  int level = 1;
  int index = 0;
  int group = 0;
  friend bool operator==(const ServerPosition&, const ServerPosition&) = default;
};

// Children (indices in level - 1; ranks of workers when level is 1) that node `index` of `level`
// merges, in this order: EvenPart(Width(level - 1), Width(level), index).
Range Children(const AggregationPlan& aggregation, int level, int index);

// The node of `level` + 1 that merges node `index` of `level`, which is below L.
int ParentOf(const AggregationPlan& aggregation, int level, int index);

// Servers are numbered 0 .. servers() - 1: by level, then index, then group.
int ServerRank(const AggregationPlan& aggregation, const ServerPosition& position);
ServerPosition ServerAt(const AggregationPlan& aggregation, int server_rank);

// Placement::kWorkers: the worker in whose function a server runs. It is one of the workers below
// the server, so that what it merges lies near; one after the other by group and level, so that
// each has about as many roots, and no more than ceil(servers() / n) + 1 servers of a regular tree.
int HostOf(const AggregationPlan& aggregation, const ServerPosition& position);
// The servers that run in the function of this worker, by ServerRank; none where they are
// dedicated.
std::vector<ServerPosition> ServersOn(const AggregationPlan& aggregation, int rank);
// Likewise, of what handles a shard at a node: a worker's own function at level 0.
int HostOfNode(const AggregationPlan& aggregation, int level, int index, int shard);

// Virtual partition v of V over `samples` is EvenPart(samples, V, v); rank r of n owns the
// partitions EvenPart(V, n, r).
Range PartitionSamples(int64_t samples, int partitions, int partition);
Range RankPartitions(int partitions, int workers, int rank);

}  // namespace lambdadnn
