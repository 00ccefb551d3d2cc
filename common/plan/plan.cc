// SPDX-License-Identifier: Apache-2.0
#include "common/plan/plan.h"

#include <cstdint>
#include <string>

#include "common/plan/geometry.h"

namespace lambdadnn {
namespace {

// Functions of one job, workers and servers: each is named in its status.
constexpr int64_t kMaxFunctions = 10'000;
// Beyond these nothing that is computed with them would be right.
constexpr int kMaxRevision = 1'000'000;
constexpr int64_t kMaxIterations = 1'000'000'000'000'000;
constexpr int64_t kMaxParameters = 1'000'000'000'000'000;
// Of a block. Smaller ones would make a norm as large as what it is of, larger ones would leave
// most models one shard.
constexpr int64_t kMinBlockElements = 16;
constexpr int64_t kMaxBlockElements = 1 << 24;

bool Within(int64_t value, int64_t least, int64_t most) { return value >= least && value <= most; }

// Of all layers and spread groups; more than any job may have as soon as one number is.
int64_t CountFunctions(const AggregationPlan& plan) {
  int64_t servers = 0;
  for (size_t i = 0; i + 1 < plan.layers.size(); ++i) servers += plan.layers[i];
  if (servers > kMaxFunctions || plan.spread > kMaxFunctions) return kMaxFunctions + 1;
  return servers * plan.spread + plan.workers();
}

}  // namespace

int AggregationPlan::servers() const {
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
  if (CountFunctions(*this) > kMaxFunctions) {
    return InvalidArgumentError("aggregation has more than " + std::to_string(kMaxFunctions) +
                                " functions, workers and servers together; use fewer");
  }
  return OkStatus();
}

int64_t ExecutionPlan::epochs() const {
  if (iterations_per_epoch <= 0) return 0;
  return iterations / iterations_per_epoch + (iterations % iterations_per_epoch > 0 ? 1 : 0);
}

Status ExecutionPlan::Validate() const {
  LDNN_RETURN_IF_ERROR(aggregation.Validate());
  if (functions < 1 || aggregation.workers() != functions) {
    return InvalidArgumentError("plan.functions must be at least 1 and equal the last layer");
  }
  if (!Within(revision, 1, kMaxRevision)) {
    return InvalidArgumentError("plan.revision must be between 1 and " +
                                std::to_string(kMaxRevision));
  }
  if (!Within(iterations, 0, kMaxIterations) || !Within(iterations_per_epoch, 0, kMaxIterations) ||
      !Within(first_iteration, 0, kMaxIterations) || !Within(checkpoint_every, 0, kMaxIterations)) {
    return InvalidArgumentError("plan iterations must be between 0 and " +
                                std::to_string(kMaxIterations));
  }
  if (global_batch_size < 1 || local_batch_size < 1) {
    return InvalidArgumentError("plan batch sizes must be at least 1");
  }
  if (!Within(gpu, 0, kMostGpus)) {
    return InvalidArgumentError("plan.gpu must be between 0 and " + std::to_string(kMostGpus));
  }
  if (virtual_partitions < functions) {
    return InvalidArgumentError("plan.virtualPartitions must not be below plan.functions");
  }
  if (!Within(parameters, 0, kMaxParameters)) {
    return InvalidArgumentError("plan.parameters must be between 0 and " +
                                std::to_string(kMaxParameters));
  }
  if (!Within(block_elements, kMinBlockElements, kMaxBlockElements) ||
      (block_elements & (block_elements - 1)) != 0) {
    return InvalidArgumentError("plan.blockElements must be a power of two between " +
                                std::to_string(kMinBlockElements) + " and " +
                                std::to_string(kMaxBlockElements));
  }
  if (!Within(buffers, 0, parameters) ||
      (buffers > 0 && (buffers_begin() < 1 || buffers_begin() % block_elements != 0))) {
    return InvalidArgumentError("plan.buffers must leave parameters before them, in whole blocks");
  }
  const int64_t count = BlockCount(parameters, block_elements);
  if (parameters > 0 && aggregation.shards > count) {
    return InvalidArgumentError("aggregation.shards is " + std::to_string(aggregation.shards) +
                                ", but the model has only " + std::to_string(count) +
                                " blocks of " + std::to_string(block_elements) +
                                " parameters; use at most that many shards");
  }
  return OkStatus();
}

}  // namespace lambdadnn
