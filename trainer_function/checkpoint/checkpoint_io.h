// SPDX-License-Identifier: Apache-2.0
// Writing and reading checkpoints (docs/formats.md): parts by the roots that own the ranges, then
// the manifest by the root of shard 0. No manifest, no checkpoint. Reads are by element range, so
// that a slice with another number of shards can restore. Every byte read is verified.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/runtime.h"
#include "common/base/status.h"
#include "common/checkpoint_index/checkpoint_index.h"
#include "common/objectstore/object_store.h"
#include "common/plan/geometry.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// A contiguous range of the flat vector with its optimizer state.
struct ParameterState {
  Range elements;
  std::vector<float> weights;
  std::vector<std::vector<float>> vectors;  // each of weights' size

  // Zeros of the right shape.
  static ParameterState Zero(Range elements, int vectors);
};

// The checkpoint that this request writes at `iteration`.
CheckpointReference CheckpointAt(const SliceRequest& request, int64_t iteration);

// Writes the part of one shard: `elements` lies inside state.elements.
Status WriteCheckpointPart(const RoleContext& context, int64_t iteration, int shard, Range elements,
                           const ParameterState& state);

// The parts of these shards of the plan, several at once; `state` covers them.
Status WriteCheckpointParts(const RoleContext& context, int64_t iteration, Range shards,
                            const ParameterState& state);

// Waits for all parts of the plan's shards, verifies their headers and writes the manifest;
// `manifest` has stop_at and the epoch's loss already. Then deletes what is older than the newest
// request.checkpoint_keep checkpoints and was not written by a later revision or incarnation; and
// what earlier incarnations wrote at or beyond this iteration (it could not be read, or this one
// would have begun there), which counts for none of the kept. With training.keepBest the checkpoint
// that one of the kept names as the best stays, too.
Status CompleteCheckpoint(const RoleContext& context, int64_t iteration,
                          CheckpointManifest manifest);

// A training's first checkpoint, by one role: the parts of all shards, with so many vectors of an
// optimizer's state, which are zero, and an empty manifest.
Status WriteFirstCheckpoint(const RoleContext& context, int64_t iteration,
                            std::span<const float> weights, int vectors);

// Waits until the checkpoint is complete.
Result<CheckpointManifest> AwaitCheckpoint(const RoleContext& context,
                                           const CheckpointReference& checkpoint);

// Fills out->weights, and out->vectors when it has any, for out->elements. kDataLoss when a part is
// torn; kFailedPrecondition when the checkpoint has another number of state vectors or parameters
// than asked for. An empty out->vectors reads weights alone.
Status ReadCheckpoint(ObjectStore& store, const CheckpointReference& checkpoint,
                      const CheckpointManifest& manifest, ParameterState* out);

}  // namespace lambdadnn
