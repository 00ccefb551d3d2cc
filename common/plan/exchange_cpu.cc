// SPDX-License-Identifier: Apache-2.0
#include "common/plan/exchange_cpu.h"

#include <algorithm>
#include <vector>

namespace lambdadnn {

namespace {

// Shards that the function of one worker handles in an iteration.
struct HostLoad {
  double pushed = 0;
  double sent = 0;  // to one reader each
  double pulled = 0;
  double merged = 0;  // of children
  double updated = 0;
  double kept = 0;  // written and read here
};

std::vector<HostLoad> LoadsOf(const AggregationPlan& plan) {
  const double of_group = static_cast<double>(plan.shards) / plan.spread;
  std::vector<HostLoad> loads(static_cast<size_t>(plan.workers()),
                              {.pushed = static_cast<double>(plan.shards),
                               .sent = static_cast<double>(plan.shards),
                               .pulled = static_cast<double>(plan.shards)});
  const auto load_of = [&](const ServerPosition& position) -> HostLoad& {
    return loads[static_cast<size_t>(HostOf(plan, position))];
  };
  for (int server = 0; server < plan.servers(); ++server) {
    const ServerPosition position = ServerAt(plan, server);
    HostLoad& load = load_of(position);
    const auto fan_in = static_cast<double>(Children(plan, position.level, position.index).size());
    load.merged += fan_in * of_group;
    if (position.level == 1) {
      // One of its workers is beside it.
      load.pulled += (fan_in - 1) * of_group;
      load.pushed -= of_group;
      load.sent -= of_group;
      load.kept += of_group;
    }
    if (position.level == plan.server_layers()) {
      load.updated += of_group;
      load.pulled -= of_group;
      load.kept += of_group;
      if (plan.workers() > 1) load.pushed += of_group;
      load.sent += of_group * (plan.workers() - 1);
      continue;
    }
    HostLoad& above = load_of(
        {position.level + 1, ParentOf(plan, position.level, position.index), position.group});
    if (&above == &load) {
      load.kept += of_group;
    } else {
      load.pushed += of_group;
      load.sent += of_group;
      above.pulled += of_group;
    }
  }
  return loads;
}

ExchangeCpu HostCpuOf(const ExchangeShape& shape, const ExchangeRates& rates) {
  const TransferCpu& cpu = rates.transfer;
  const double bytes =
      static_cast<double>(shape.parameters) * kFloatBytes / shape.aggregation.shards;
  const double merge = rates.merge_bytes_per_second > 0 ? 1 / rates.merge_bytes_per_second : 0;
  const double update = rates.update_seconds_per_byte > 0 ? rates.update_seconds_per_byte : merge;
  constexpr double kCopies = 2;
  ExchangeCpu busiest;
  for (const HostLoad& load : LoadsOf(shape.aggregation)) {
    ExchangeCpu seconds;
    seconds.worker_push = load.pushed * (cpu.push_seconds + bytes * cpu.push_seconds_per_byte) +
                          load.sent * (rates.send_seconds + bytes * rates.send_seconds_per_byte);
    seconds.worker_pull =
        load.pulled * (cpu.pull_seconds + bytes * cpu.pull_seconds_per_byte) +
        bytes * (merge * (load.merged + kCopies * load.kept) + update * load.updated);
    if (seconds.WorkerSeconds() > busiest.WorkerSeconds()) busiest = seconds;
  }
  return busiest;
}

}  // namespace

ExchangeCpu ExchangeCpuOf(const ExchangeShape& shape, const ExchangeRates& rates) {
  const AggregationPlan& plan = shape.aggregation;
  if (plan.placement == Placement::kWorkers) return HostCpuOf(shape, rates);
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
  const auto send = [&](double objects, double of_bytes) {
    return objects * rates.send_seconds + of_bytes * rates.send_seconds_per_byte;
  };
  ExchangeCpu seconds;
  seconds.worker_push = push(shards, bytes) + send(shards, bytes);
  seconds.worker_pull = pull(shards, bytes);
  const double updating = group_bytes * update;
  // A root sends its weights to all workers, others what they push to one.
  seconds.server_update = updating + (plan.workers() - 1) * send(group_shards, group_bytes);
  const ServerCpu& server = rates.server;
  if (server.known()) {
    seconds.server_child =
        group_shards * server.child_seconds + group_bytes * server.child_seconds_per_byte;
    // It was measured of a root.
    seconds.server_push =
        std::max(0.0, server.iteration_seconds + group_shards * server.shard_seconds +
                          group_bytes * server.seconds_per_byte - updating);
  } else {
    seconds.server_child = pull(group_shards, group_bytes) + group_bytes * merge;
    seconds.server_push = push(group_shards, group_bytes);
  }
  seconds.server_push += send(group_shards, group_bytes);
  for (int level = 1; level <= plan.server_layers(); ++level) {
    const double of_level = plan.FanIn(level) * seconds.server_child + seconds.server_push +
                            (level == plan.server_layers() ? seconds.server_update : 0);
    seconds.server_seconds = std::max(seconds.server_seconds, of_level);
  }
  return seconds;
}

}  // namespace lambdadnn
