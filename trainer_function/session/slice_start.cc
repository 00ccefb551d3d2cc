// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/session/slice_start.h"

namespace lambdadnn {

Result<SliceStart> FindStart(const RoleContext& context) {
  const SliceRequest& request = context.request;
  SliceStart start;
  if (request.start) {
    start.checkpoint = *request.start;
    LDNN_ASSIGN_OR_RETURN(start.manifest, ReadManifest(context.store, start.checkpoint));
    start.warm = start.checkpoint.iteration != request.first_iteration;
  } else {
    start.checkpoint = CheckpointAt(request, request.first_iteration);
    LDNN_ASSIGN_OR_RETURN(start.manifest, AwaitCheckpoint(context, start.checkpoint));
  }
  if (start.manifest.parameters != request.plan.parameters) {
    return FailedPreconditionError(
        "the checkpoint of iteration " + std::to_string(start.checkpoint.iteration) + " has " +
        std::to_string(start.manifest.parameters) + " parameters, the plan says " +
        std::to_string(request.plan.parameters) + "; start from a checkpoint of this model");
  }
  if (start.warm) {
    start.manifest.stop_at = 0;
    start.manifest.epoch_loss_sum = 0;
    start.manifest.epoch_samples = 0;
  }
  return start;
}

}  // namespace lambdadnn
