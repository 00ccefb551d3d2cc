// SPDX-License-Identifier: Apache-2.0
// Role `server` of a slice: one node of the aggregation tree. Leaf and inner nodes merge and pass
// on; roots turn the sum into a mean, clip, update their shards and publish the weights, and write
// checkpoints. The root of shard 0 also answers stop requests, watches the loss and writes
// checkpoint manifests.
#pragma once

#include "common/base/status.h"
#include "trainer_function/session/slice_session.h"

namespace lambdadnn {

// Runs until the plan's end, an agreed stop or an error. Fills in next_iteration, outcome,
// checkpoint and digest of the session's record; on error only what is true at that point,
// and `permanent` when another try cannot help.
Status RunServerRole(SliceSession& session);

}  // namespace lambdadnn
