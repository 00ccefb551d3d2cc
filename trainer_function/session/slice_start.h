// SPDX-License-Identifier: Apache-2.0
// Where a slice begins, the same for every role: the checkpoint of the request, or checkpoint 0 of
// a fresh job, which worker 0 writes.
#pragma once

#include "common/base/status.h"
#include "trainer_function/checkpoint/checkpoint_io.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

struct SliceStart {
  CheckpointReference checkpoint;
  CheckpointManifest manifest;
  // The checkpoint is of another run and only its weights are used.
  bool warm = false;
};

// Waits for the manifest of a fresh job; a checkpoint named by the request must be there.
Result<SliceStart> FindStart(const RoleContext& context);

}  // namespace lambdadnn
