// SPDX-License-Identifier: Apache-2.0
#include "common/plan/workload.h"

#include <algorithm>
#include <cmath>

namespace lambdadnn {
namespace {

// Points joined by straight lines, constant beyond the ends; ascending, and at least one.
template <typename Point>
double Interpolate(const std::vector<Point>& points, double Point::* x, double Point::* y,
                   double at) {
  if (at <= points.front().*x) return points.front().*y;
  if (at >= points.back().*x) return points.back().*y;
  const auto right =
      std::upper_bound(points.begin(), points.end(), at,
                       [x](double value, const Point& point) { return value < point.*x; });
  const Point& left = *(right - 1);
  const double share = (at - left.*x) / ((*right).*x - left.*x);
  return left.*y + share * ((*right).*y - left.*y);
}

// How many more than one begin on each core.
double CrowdOf(const Platform& platform, int functions) {
  const double cores = CoresOf(platform);
  return cores > 0 ? std::max(0.0, functions / cores - 1) : 0;
}

}  // namespace

double TrainingRate::At(double memory_mib) const {
  const double rate = table.empty() ? slope * memory_mib + intercept
                                    : Interpolate(table, &Point::memory_mib,
                                                  &Point::samples_per_second, memory_mib);
  return max_samples_per_second ? std::min(rate, *max_samples_per_second) : rate;
}

double BytesPerSecondOf(const std::vector<WorkloadProfile::StorePoint>& points, double streams) {
  using Point = WorkloadProfile::StorePoint;
  return Interpolate(points, &Point::streams, &Point::bytes_per_second, streams);
}

int MilliCpuOf(const Platform& platform, int memory_mib) {
  if (platform.milli_cpu_per_gib <= 0) return 0;
  const double share = platform.milli_cpu_per_gib * memory_mib / kMibPerGib;
  return std::max(10, static_cast<int>(std::lround(share)));
}

double CoresOf(const Platform& platform) {
  constexpr double kMilliPerCore = 1000;
  if (platform.total_milli_cpu > 0) return platform.total_milli_cpu / kMilliPerCore;
  double milli_cpu = 0;
  for (const Platform::Node& node : platform.nodes) milli_cpu += node.milli_cpu;
  return milli_cpu / kMilliPerCore;
}

double StartSlowdown(const Platform& platform, int functions, double core_share) {
  const double crowd = CrowdOf(platform, functions);
  return platform.quota_while_starting ? std::max(crowd, 1 / core_share - 1) : crowd;
}

double PodStartSeconds(const Platform& platform, int functions) {
  return platform.pod_start_cpu_seconds * CrowdOf(platform, functions);
}

int ThreadsOf(const Platform& platform, int memory_mib) {
  constexpr double kMilliCpuPerThread = 1000;
  const double milli_cpu = platform.milli_cpu_per_gib * memory_mib / kMibPerGib;
  return std::max(1, static_cast<int>(milli_cpu / kMilliCpuPerThread));
}

}  // namespace lambdadnn
