// SPDX-License-Identifier: Apache-2.0
#include "common/plan/exchange_cpu.h"

#include <algorithm>
#include <vector>

namespace lambdadnn {

namespace {

// Of the function that has most to do, with the servers in it.
double BusiestHost(const AggregationPlan& plan, const ExchangeCpu& cpu) {
  const double push = cpu.worker_push / plan.spread;
  const double pull = cpu.worker_pull / plan.spread;
  const double child_pull = std::min(pull, cpu.server_child);
  std::vector<double> seconds(static_cast<size_t>(plan.workers()),
                              cpu.worker_push + cpu.worker_pull);
  const auto of = [&](const ServerPosition& position) -> double& {
    return seconds[static_cast<size_t>(HostOf(plan, position))];
  };
  for (int server = 0; server < plan.servers(); ++server) {
    const ServerPosition position = ServerAt(plan, server);
    double& host = of(position);
    const auto children =
        static_cast<double>(Children(plan, position.level, position.index).size());
    host += children * cpu.server_child + cpu.server_push;
    // One of a leaf's workers is beside it.
    if (position.level == 1) host += 2 * cpu.kept - push - child_pull;
    if (position.level == plan.server_layers()) {
      host += cpu.server_update + 2 * cpu.kept - pull;
      if (plan.workers() == 1) host -= push;
      continue;
    }
    const ServerPosition above = {position.level + 1,
                                  ParentOf(plan, position.level, position.index), position.group};
    if (&of(above) == &host) host += 2 * cpu.kept - push - child_pull;
  }
  return std::max(0.0, std::ranges::max(seconds));
}

}  // namespace

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
  const auto send = [&](double objects, double of_bytes) {
    return objects * rates.send_seconds + of_bytes * rates.send_seconds_per_byte;
  };
  ExchangeCpu seconds;
  seconds.worker_push = push(shards, bytes) + send(shards, bytes);
  seconds.worker_pull = pull(shards, bytes);
  const double updating = group_bytes * update;
  // A root sends its weights to all workers but one beside it, others what they push to one.
  const bool hosted = plan.placement == Placement::kWorkers;
  const int readers = std::max(1, plan.workers() - (hosted ? 1 : 0));
  seconds.server_update = updating + (readers - 1) * send(group_shards, group_bytes);
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
  if (hosted) {
    seconds.kept = group_bytes * merge;
    seconds.worker_seconds = BusiestHost(plan, seconds);
    return seconds;
  }
  seconds.worker_seconds = seconds.worker_push + seconds.worker_pull;
  for (int level = 1; level <= plan.server_layers(); ++level) {
    const double of_level = plan.FanIn(level) * seconds.server_child + seconds.server_push +
                            (level == plan.server_layers() ? seconds.server_update : 0);
    seconds.server_seconds = std::max(seconds.server_seconds, of_level);
  }
  return seconds;
}

AggregationPlan PairPlan() {
  AggregationPlan plan;
  plan.shards = 2;
  plan.spread = 2;
  plan.layers = {1, 2};
  plan.transport = TransportKind::kDirect;
  plan.placement = Placement::kWorkers;
  return plan;
}

namespace {

// Of a pair, by the parts of its exchange.
PairCpu PairOf(const ExchangeRates& rates) {
  constexpr int64_t kElements = 1 << 20;
  const auto seconds = [&](int64_t elements) {
    return ExchangeCpuOf({PairPlan(), elements}, rates).worker_seconds;
  };
  const double least = seconds(0);
  return {least, (seconds(kElements) - least) / static_cast<double>(kElements * kFloatBytes)};
}

// All per-byte numbers but those of the arithmetic, by this factor.
ExchangeRates WithBytesTimes(double factor, ExchangeRates rates) {
  const double merge = rates.merge_bytes_per_second > 0 ? 1 / rates.merge_bytes_per_second : 0;
  const auto beside = [&](double seconds, double arithmetic) {
    return arithmetic + factor * std::max(0.0, seconds - arithmetic);
  };
  rates.transfer.push_seconds_per_byte *= factor;
  rates.transfer.pull_seconds_per_byte *= factor;
  rates.send_seconds_per_byte *= factor;
  rates.server.seconds_per_byte =
      beside(rates.server.seconds_per_byte, rates.update_seconds_per_byte);
  rates.server.child_seconds_per_byte = beside(rates.server.child_seconds_per_byte, merge);
  return rates;
}

}  // namespace

ExchangeRates RatesOfPair(const ExchangeRates& rates, const PairCpu& pair) {
  if (!pair.known()) return rates;
  ExchangeRates fitted = rates;
  if (!fitted.server.known()) {
    const TransferCpu& cpu = rates.transfer;
    const double merge = rates.merge_bytes_per_second > 0 ? 1 / rates.merge_bytes_per_second : 0;
    const double update = rates.update_seconds_per_byte > 0 ? rates.update_seconds_per_byte : merge;
    fitted.update_seconds_per_byte = update;
    fitted.server = {0, cpu.push_seconds, cpu.pull_seconds, cpu.push_seconds_per_byte + update,
                     cpu.pull_seconds_per_byte + merge};
  }
  const double arithmetic = PairOf(WithBytesTimes(0, fitted)).seconds_per_byte;
  const double all = PairOf(fitted).seconds_per_byte;
  if (all > arithmetic) {
    // More or less than this is a measurement gone wrong.
    constexpr double kMost = 4;
    const double factor = (pair.seconds_per_byte - arithmetic) / (all - arithmetic);
    fitted = WithBytesTimes(std::clamp(factor, 1 / kMost, kMost), fitted);
  }
  double& iteration = fitted.server.iteration_seconds;
  iteration = std::max(0.0, iteration + pair.iteration_seconds - PairOf(fitted).iteration_seconds);
  return fitted;
}

}  // namespace lambdadnn
