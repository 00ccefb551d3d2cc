// SPDX-License-Identifier: Apache-2.0
// LambdaML's patterns and the largest memory: parts of the space.
#include "operator/planner/baselines.h"

namespace lambdadnn {

void NarrowToAllReduce(PlannerInput* input) { input->aggregation.shards = 1; }

void NarrowToScatterReduce(PlannerInput* input) { input->aggregation.shard_per_worker = true; }

void NarrowToLargestMemory(PlannerInput* input) {
  const auto space = SpaceOf(*input);
  if (!space.ok()) return;  // said where the space is searched
  input->limits.min_memory_mib = space->memory_mib.back();
  input->limits.max_memory_mib = space->memory_mib.back();
}

}  // namespace lambdadnn
