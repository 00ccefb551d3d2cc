// SPDX-License-Identifier: Apache-2.0
#include "common/plan/plan.h"

#include <string>

#include "common/plan/geometry.h"

namespace lambdadnn {

int AggregationPlan::server_functions() const {
  int per_group = 0;
  for (int level = 1; level <= server_layers(); ++level) per_group += Width(level);
  return per_group * spread;
}

Status AggregationPlan::Validate() const {
  if (layers.size() < 2) {
    return InvalidArgumentError("aggregation.layers needs a root and the workers, e.g. [1, 4]");
  }
  if (layers.front() != 1) {
    return InvalidArgumentError("aggregation.layers must begin with the root: 1");
  }
  for (size_t i = 1; i < layers.size(); ++i) {
    if (layers[i] < layers[i - 1]) {
      return InvalidArgumentError("aggregation.layers must not shrink towards the workers");
    }
  }
  if (shards < 1) return InvalidArgumentError("aggregation.shards must be at least 1");
  if (spread < 1 || shards % spread != 0) {
    return InvalidArgumentError("aggregation.spread must divide aggregation.shards (" +
                                std::to_string(shards) + ")");
  }
  return OkStatus();
}

Status Plan::Validate() const {
  LDNN_RETURN_IF_ERROR(aggregation.Validate());
  if (functions < 1 || aggregation.workers() != functions) {
    return InvalidArgumentError("plan.functions must be at least 1 and equal the last layer");
  }
  if (global_batch_size < 1 || local_batch_size < 1) {
    return InvalidArgumentError("plan batch sizes must be at least 1");
  }
  if (virtual_partitions < functions) {
    return InvalidArgumentError("plan.virtualPartitions must not be below plan.functions");
  }
  if (parameters > 0 && aggregation.shards > BlockCount(parameters)) {
    return InvalidArgumentError("aggregation.shards is " + std::to_string(aggregation.shards) +
                                ", but the model has only " +
                                std::to_string(BlockCount(parameters)) +
                                " blocks of 16384 parameters; use at most that many shards");
  }
  return OkStatus();
}

}  // namespace lambdadnn
