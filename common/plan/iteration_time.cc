// SPDX-License-Identifier: Apache-2.0
#include "common/plan/iteration_time.h"

#include <algorithm>
#include <cmath>

#include "common/plan/geometry.h"

namespace lambdadnn {
namespace {

// The optimizer passes over a merged shard once.
constexpr double kUpdatePasses = 1;

double Inverse(double bytes_per_second) { return bytes_per_second > 0 ? 1 / bytes_per_second : 0; }

double LargestShardElements(const ExchangeShape& shape) {
  const int64_t blocks = BlockCount(shape.parameters, shape.block_elements);
  const int64_t largest = (blocks + shape.aggregation.shards - 1) / shape.aggregation.shards;
  return static_cast<double>(std::min(largest * shape.block_elements, shape.parameters));
}

// Where workers serve, how many of a group's gradients stay in the function of the leaf that merges
// them, and how many shards of its own each worker keeps: with fewer groups than workers, some keep
// none.
double KeptGradients(const AggregationPlan& plan) {
  return plan.placement == Placement::kWorkers ? 1 : 0;
}
double KeptShards(const AggregationPlan& plan) {
  if (plan.placement != Placement::kWorkers) return 0;
  const int groups = plan.spread * plan.Width(1) / plan.workers();
  return static_cast<double>(groups) * plan.shards / plan.spread;
}

// Requests of one function: `seconds_per_byte` of its bandwidth.
class Requests {
 public:
  Requests(const ExchangeSpeeds& speeds, double bytes, double seconds_per_byte)
      : request_(speeds.request_seconds),
        in_flight_(speeds.requests_in_flight),
        transfer_(bytes * seconds_per_byte) {}
  double First(double count) const {
    return std::ceil(count / in_flight_) * request_ + count * transfer_;
  }
  double Rest(double count, double shards) const {
    return (std::ceil(count * shards / in_flight_) - std::ceil(count / in_flight_)) * request_ +
           count * (shards - 1) * transfer_;
  }
  double transfer() const { return transfer_; }

 private:
  double request_;
  double in_flight_;
  double transfer_;
};

// One root writes the norms of its shards and reads those of all others, one after another.
double NormSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds) {
  const double blocks =
      std::ceil(LargestShardElements(shape) / static_cast<double>(shape.block_elements));
  const double bytes = blocks * kNormBytes + static_cast<double>(kExchangeHeaderBytes);
  return shape.aggregation.shards *
         (speeds.request_seconds + bytes * Inverse(speeds.server_bytes_per_second));
}

}  // namespace

ExchangeStages StagesOf(const ExchangeShape& shape, const ExchangeSpeeds& speeds) {
  const AggregationPlan& plan = shape.aggregation;
  ExchangeStages stages;
  const double kept = KeptGradients(plan);
  stages.shards_of_group = static_cast<double>(plan.shards) / plan.spread;
  const double group = stages.shards_of_group;
  stages.shards = std::max(group, plan.shards - KeptShards(plan));
  const double bytes =
      LargestShardElements(shape) * kFloatBytes + static_cast<double>(kExchangeHeaderBytes);
  stages.shard_bytes = bytes;
  stages.request = speeds.request_seconds;
  const Requests worker(speeds, bytes, 0);
  stages.worker_rest = worker.Rest(1, stages.shards);
  stages.worker_before = worker.Rest(1, stages.shards - group + 1);
  stages.worker_seconds_per_byte = Inverse(speeds.worker_bytes_per_second);

  const Requests server(speeds, bytes, Inverse(speeds.server_bytes_per_second));
  const double merge_one = bytes * Inverse(speeds.merge_bytes_per_second);
  // Of a shard at the root, beyond one.
  const double sends =
      speeds.root_sends_to_each ? (plan.workers() - 1 - kept) * server.transfer() : 0;
  stages.put_rest = server.Rest(1, group);
  // Of the vector that cross the store's network.
  double copies = 2.0 * plan.workers() - kept * (plan.Width(1) + 1);
  for (int level = 1; level <= plan.server_layers(); ++level) {
    const double fan_in = plan.FanIn(level) - (level == 1 ? kept : 0);
    const double rest = server.Rest(fan_in, group) + (group - 1) * fan_in * merge_one;
    const double put = server.First(1);
    stages.levels += server.First(fan_in) + fan_in * merge_one + put;
    if (level == plan.server_layers()) {
      stages.root_put = kUpdatePasses * merge_one + put + sends;
      stages.levels += kUpdatePasses * merge_one + sends;
      stages.root_rest = rest + (group - 1) * kUpdatePasses * merge_one;
    } else {
      stages.level_rest = std::max({stages.level_rest, rest, stages.put_rest});
    }
    if (level == plan.server_layers()) stages.put_rest += (group - 1) * sends;
    copies += plan.Width(level - 1) + plan.Width(level) - (level == 1 ? kept * plan.Width(1) : 0);
  }
  if (shape.clip_by_global_norm) stages.norms = NormSeconds(shape, speeds);
  stages.least = copies * static_cast<double>(shape.parameters) * kFloatBytes *
                 Inverse(speeds.store_bytes_per_second);
  return stages;
}

double ExchangeStages::PipelinedSeconds() const {
  const double transfer = shard_bytes * worker_seconds_per_byte;
  const double once = request + transfer;  // up, and down
  const double rest = worker_rest + (shards - 1) * transfer;
  const double before = worker_before + (shards - shards_of_group) * transfer;
  if (norms == 0) {
    const double servers = std::max({level_rest, root_rest, put_rest});
    return std::max(2 * once + levels + std::max(rest, before + servers), least);
  }
  const double merged =
      once + levels - root_put + std::max(rest, before + std::max(level_rest, root_rest));
  const double updated = root_put + once + std::max(put_rest, rest);
  return std::max(merged + norms + updated, least);
}

double ExchangeStages::SequentialSeconds() const {
  const double once = request + shard_bytes * worker_seconds_per_byte;
  return std::max(2 * shards * once + shards_of_group * levels + norms, least);
}

double PipelinedIterationSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds) {
  return StagesOf(shape, speeds).PipelinedSeconds();
}

double SequentialIterationSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds) {
  ExchangeSpeeds one = speeds;
  one.requests_in_flight = 1;
  return StagesOf(shape, one).SequentialSeconds();
}

}  // namespace lambdadnn
