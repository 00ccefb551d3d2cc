// SPDX-License-Identifier: Apache-2.0
#include "common/plan/workload.h"

#include <algorithm>
#include <cmath>

namespace lambdadnn {
namespace {

double Interpolate(const std::vector<TrainingRate::Point>& table, double memory_mib) {
  if (memory_mib <= table.front().memory_mib) return table.front().samples_per_second;
  if (memory_mib >= table.back().memory_mib) return table.back().samples_per_second;
  const auto right = std::upper_bound(
      table.begin(), table.end(), memory_mib,
      [](double memory, const TrainingRate::Point& point) { return memory < point.memory_mib; });
  const auto left = right - 1;
  const double share = (memory_mib - left->memory_mib) / (right->memory_mib - left->memory_mib);
  return left->samples_per_second + share * (right->samples_per_second - left->samples_per_second);
}

}  // namespace

double TrainingRate::At(double memory_mib) const {
  const double rate =
      table.empty() ? slope * memory_mib + intercept : Interpolate(table, memory_mib);
  return max_samples_per_second ? std::min(rate, *max_samples_per_second) : rate;
}

int MilliCpuOf(const Platform& platform, int memory_mib) {
  if (platform.milli_cpu_per_gib <= 0) return 0;
  const double share = platform.milli_cpu_per_gib * memory_mib / kMibPerGib;
  return std::max(10, static_cast<int>(std::lround(share)));
}

int ThreadsOf(const Platform& platform, int memory_mib) {
  constexpr double kMilliCpuPerThread = 1000;
  const double milli_cpu = platform.milli_cpu_per_gib * memory_mib / kMibPerGib;
  return std::max(1, static_cast<int>(milli_cpu / kMilliCpuPerThread));
}

}  // namespace lambdadnn
