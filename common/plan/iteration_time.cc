// SPDX-License-Identifier: Apache-2.0
#include "common/plan/iteration_time.h"

#include <algorithm>
#include <cmath>

#include "common/plan/geometry.h"

namespace lambdadnn {
namespace {

constexpr double kFloatBytes = 4;
constexpr double kNormBytes = 8;

double Quotient(double bytes, double bytes_per_second) {
  return bytes_per_second > 0 ? bytes / bytes_per_second : 0;
}

// The root touches a shard once more than it merges: the optimizer's update.
constexpr double kUpdatePasses = 1;

double RequestsSeconds(const ExchangeSpeeds& speeds, double count, double bytes, double bandwidth) {
  return std::ceil(count / speeds.requests_in_flight) * speeds.request_seconds +
         Quotient(count * bytes, bandwidth);
}

double LargestShardElements(const ExchangeShape& shape) {
  const auto blocks = BlockCount(shape.parameters);
  const auto largest = (blocks + shape.aggregation.shards - 1) / shape.aggregation.shards;
  return static_cast<double>(std::min(largest * kBlockElements, shape.parameters));
}

double ShardObjectBytes(const ExchangeShape& shape) {
  return LargestShardElements(shape) * kFloatBytes + kExchangeHeaderBytes;
}

// One root writes the norms of its shards and reads those of all others.
double NormSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds,
                   double shards_of_group) {
  const double bytes =
      std::ceil(LargestShardElements(shape) / static_cast<double>(kBlockElements)) * kNormBytes +
      kExchangeHeaderBytes;
  const double read = shape.aggregation.shards - shards_of_group;
  return RequestsSeconds(speeds, shards_of_group, bytes, speeds.server_bytes_per_second) +
         RequestsSeconds(speeds, read, bytes, speeds.server_bytes_per_second);
}

}  // namespace

double WorkerStageSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds) {
  return RequestsSeconds(speeds, 1, ShardObjectBytes(shape), speeds.worker_bytes_per_second);
}

ExchangeStages StagesOf(const ExchangeShape& shape, const ExchangeSpeeds& speeds) {
  const AggregationPlan& plan = shape.aggregation;
  const double bytes = ShardObjectBytes(shape);
  const double put = RequestsSeconds(speeds, 1, bytes, speeds.server_bytes_per_second);
  ExchangeStages stages;
  stages.shards = plan.shards;
  stages.shards_of_group = static_cast<double>(plan.shards) / plan.spread;
  stages.up = stages.down = WorkerStageSeconds(shape, speeds);
  double copies = 2.0 * plan.workers();  // of the vector that cross the store's network
  for (int level = 1; level <= plan.server_layers(); ++level) {
    const int width = plan.Width(level);
    const int children = plan.Width(level - 1);
    const double fan_in = (children + width - 1) / width;
    double seconds = RequestsSeconds(speeds, fan_in, bytes, speeds.server_bytes_per_second) +
                     Quotient(fan_in * bytes, speeds.merge_bytes_per_second) + put;
    if (level == plan.server_layers()) {
      stages.root_put = Quotient(kUpdatePasses * bytes, speeds.merge_bytes_per_second) + put;
      seconds += stages.root_put - put;
      stages.root = seconds;
    } else {
      stages.slowest_level = std::max(stages.slowest_level, seconds);
    }
    stages.levels += seconds;
    copies += children + width;
  }
  if (shape.clip_by_global_norm) {
    stages.norms = NormSeconds(shape, speeds, stages.shards_of_group);
  }
  stages.least = Quotient(copies * static_cast<double>(shape.parameters) * kFloatBytes,
                          speeds.store_bytes_per_second);
  return stages;
}

double ExchangeStages::PipelinedSeconds() const {
  const double before_group = (shards - shards_of_group) * up;
  const double more_of_group = shards_of_group - 1;
  if (norms == 0) {
    const double fill = up + levels + down;
    const double slowest = std::max({up, slowest_level, root, down});
    return std::max(fill + std::max(before_group + more_of_group * slowest, (shards - 1) * down),
                    least);
  }
  const double merged = up + levels - root_put + before_group +
                        more_of_group * std::max({up, slowest_level, root - root_put});
  const double updated = root_put + down + std::max(more_of_group * root_put, (shards - 1) * down);
  return std::max(merged + norms + updated, least);
}

double ExchangeStages::SequentialSeconds() const {
  return std::max(shards * up + shards_of_group * levels + norms + shards * down, least);
}

double PipelinedIterationSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds) {
  return StagesOf(shape, speeds).PipelinedSeconds();
}

double SequentialIterationSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds) {
  return StagesOf(shape, speeds).SequentialSeconds();
}

}  // namespace lambdadnn
