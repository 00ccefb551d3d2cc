// SPDX-License-Identifier: Apache-2.0
#include "common/plan/exchange_cpu.h"

#include <algorithm>

namespace lambdadnn {
namespace {

double Pushes(const TransferCpu& cpu, double objects, double bytes) {
  return objects * cpu.push_seconds + bytes * cpu.push_seconds_per_byte;
}

double Pulls(const TransferCpu& cpu, double objects, double bytes) {
  return objects * cpu.pull_seconds + bytes * cpu.pull_seconds_per_byte;
}

}  // namespace

double WorkerExchangeCpuSeconds(const ExchangeShape& shape, const TransferCpu& cpu) {
  const double shards = shape.aggregation.shards;
  const double bytes = static_cast<double>(shape.parameters) * kFloatBytes;
  return Pushes(cpu, shards, bytes) + Pulls(cpu, shards, bytes);
}

double ServerExchangeCpuSeconds(const ExchangeShape& shape, const TransferCpu& cpu,
                                double merge_bytes_per_second, double update_seconds_per_byte) {
  const AggregationPlan& plan = shape.aggregation;
  const double group = static_cast<double>(plan.shards) / plan.spread;
  const double bytes = static_cast<double>(shape.parameters) * kFloatBytes / plan.spread;
  const double merge = merge_bytes_per_second > 0 ? 1 / merge_bytes_per_second : 0;
  const double update = update_seconds_per_byte > 0 ? update_seconds_per_byte : merge;
  double busiest = 0;
  for (int level = 1; level <= plan.server_layers(); ++level) {
    const int width = plan.Width(level);
    const double fan_in = (plan.Width(level - 1) + width - 1) / width;
    double seconds = Pulls(cpu, fan_in * group, fan_in * bytes) + Pushes(cpu, group, bytes) +
                     fan_in * bytes * merge;
    if (level == plan.server_layers()) seconds += bytes * update;
    busiest = std::max(busiest, seconds);
  }
  return busiest;
}

}  // namespace lambdadnn
