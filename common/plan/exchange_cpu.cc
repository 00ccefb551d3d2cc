// SPDX-License-Identifier: Apache-2.0
#include "common/plan/exchange_cpu.h"

#include <algorithm>

namespace lambdadnn {

ExchangeCpu ExchangeCpuOf(const ExchangeShape& shape, const ExchangeRates& rates) {
  const AggregationPlan& plan = shape.aggregation;
  const TransferCpu& cpu = rates.transfer;
  const double shards = plan.shards;
  const double bytes = static_cast<double>(shape.parameters) * kFloatBytes;
  const double group_shards = shards / plan.spread;
  const double group_bytes = bytes / plan.spread;
  const double merge = rates.merge_bytes_per_second > 0 ? 1 / rates.merge_bytes_per_second : 0;
  const double update = rates.update_seconds_per_byte > 0 ? rates.update_seconds_per_byte : merge;
  const auto push = [&](double objects, double of_bytes) {
    return objects * cpu.push_seconds + of_bytes * cpu.push_seconds_per_byte;
  };
  const auto pull = [&](double objects, double of_bytes) {
    return objects * cpu.pull_seconds + of_bytes * cpu.pull_seconds_per_byte;
  };
  ExchangeCpu seconds;
  seconds.worker_push = push(shards, bytes);
  seconds.worker_pull = pull(shards, bytes);
  seconds.server_update = group_bytes * update;
  const ServerCpu& server = rates.server;
  if (server.known()) {
    seconds.server_child =
        group_shards * server.child_seconds + group_bytes * server.child_seconds_per_byte;
    // It was measured of a root.
    seconds.server_push =
        std::max(0.0, server.iteration_seconds + group_shards * server.shard_seconds +
                          group_bytes * server.seconds_per_byte - seconds.server_update);
  } else {
    seconds.server_child = pull(group_shards, group_bytes) + group_bytes * merge;
    seconds.server_push = push(group_shards, group_bytes);
  }
  for (int level = 1; level <= plan.server_layers(); ++level) {
    const double of_level = plan.FanIn(level) * seconds.server_child + seconds.server_push +
                            (level == plan.server_layers() ? seconds.server_update : 0);
    seconds.server_seconds = std::max(seconds.server_seconds, of_level);
  }
  return seconds;
}

}  // namespace lambdadnn
