// SPDX-License-Identifier: Apache-2.0
#include "common/plan/exchange_cpu.h"

#include <algorithm>

namespace lambdadnn {
namespace {

constexpr double kFloatBytes = 4;

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
                                double merge_bytes_per_second) {
  const AggregationPlan& plan = shape.aggregation;
  const double group = static_cast<double>(plan.shards) / plan.spread;
  const double bytes = static_cast<double>(shape.parameters) * kFloatBytes / plan.spread;
  const double merge_seconds_per_byte = merge_bytes_per_second > 0 ? 1 / merge_bytes_per_second : 0;
  double busiest = 0;
  for (int level = 1; level <= plan.server_layers(); ++level) {
    const int width = plan.Width(level);
    const double fan_in = (plan.Width(level - 1) + width - 1) / width;
    busiest =
        std::max(busiest, Pulls(cpu, fan_in * group, fan_in * bytes) + Pushes(cpu, group, bytes) +
                              (fan_in + 1) * bytes * merge_seconds_per_byte);
  }
  return busiest;
}

}  // namespace lambdadnn
