// SPDX-License-Identifier: Apache-2.0
#include "common/plan/geometry.h"

#include <algorithm>

namespace lambdadnn {

int64_t BlockCount(int64_t elements, int64_t block_elements) {
  return (elements + block_elements - 1) / block_elements;
}

int64_t VectorElements(int64_t parameters, int64_t buffers, int64_t block_elements) {
  if (buffers == 0) return parameters;
  return BlockCount(parameters, block_elements) * block_elements + buffers;
}

Range EvenPart(int64_t total, int64_t parts, int64_t index) {
  LDNN_CHECK(parts > 0 && index >= 0 && index < parts, "part index out of range");
  return {index * total / parts, (index + 1) * total / parts};
}

Range ShardRange(const ParameterBlocks& blocks, int shards, int shard) {
  const int64_t size = blocks.block_elements;
  const Range part = EvenPart(BlockCount(blocks.parameters, size), shards, shard);
  return {part.begin * size, std::min(part.end * size, blocks.parameters)};
}

Range GroupShards(const AggregationPlan& aggregation, int group) {
  return EvenPart(aggregation.shards, aggregation.spread, group);
}

int GroupOfShard(const AggregationPlan& aggregation, int shard) {
  return shard / (aggregation.shards / aggregation.spread);
}

Range Children(const AggregationPlan& aggregation, int level, int index) {
  return EvenPart(aggregation.Width(level - 1), aggregation.Width(level), index);
}

int ParentOf(const AggregationPlan& aggregation, int level, int index) {
  // The last part that begins no later: floor(p x total / parts) <= index.
  const int64_t total = aggregation.Width(level);
  const int64_t parts = aggregation.Width(level + 1);
  return static_cast<int>(((index + 1) * parts - 1) / total);
}

int ServerRank(const AggregationPlan& aggregation, const ServerPosition& position) {
  int before = 0;
  for (int level = 1; level < position.level; ++level) before += aggregation.Width(level);
  return (before + position.index) * aggregation.spread + position.group;
}

ServerPosition ServerAt(const AggregationPlan& aggregation, int server_rank) {
  ServerPosition position;
  position.group = server_rank % aggregation.spread;
  int node = server_rank / aggregation.spread;
  while (node >= aggregation.Width(position.level)) {
    node -= aggregation.Width(position.level);
    ++position.level;
    LDNN_CHECK(position.level <= aggregation.server_layers(), "server rank out of range");
  }
  position.index = node;
  return position;
}

int HostOf(const AggregationPlan& aggregation, const ServerPosition& position) {
  Range below = {position.index, position.index + 1};
  for (int level = position.level; level >= 1; --level) {
    below = {Children(aggregation, level, static_cast<int>(below.begin)).begin,
             Children(aggregation, level, static_cast<int>(below.end) - 1).end};
  }
  const int64_t turn = position.group + position.level - 1;
  return static_cast<int>(below.begin + turn % below.size());
}

std::vector<ServerPosition> ServersOn(const AggregationPlan& aggregation, int rank) {
  std::vector<ServerPosition> servers;
  if (aggregation.placement == Placement::kDedicated) return servers;
  for (int server = 0; server < aggregation.servers(); ++server) {
    const ServerPosition position = ServerAt(aggregation, server);
    if (HostOf(aggregation, position) == rank) servers.push_back(position);
  }
  return servers;
}

int HostOfNode(const AggregationPlan& aggregation, int level, int index, int shard) {
  if (level == 0) return index;
  return HostOf(aggregation, {level, index, GroupOfShard(aggregation, shard)});
}

Range PartitionSamples(int64_t samples, int partitions, int partition) {
  return EvenPart(samples, partitions, partition);
}

Range RankPartitions(int partitions, int workers, int rank) {
  return EvenPart(partitions, workers, rank);
}

}  // namespace lambdadnn
