// SPDX-License-Identifier: Apache-2.0
// Role `profile` of a slice: measures on this function what the planner needs to know. Nothing of
// what it does is left behind.
//
// Fills in the record's profile_iteration_seconds (batch, forward, backward, as in training, each
// with the pacing of the function's CPU quota), profile_evaluation_samples_per_second and metrics
// (names in protocol/slice.h). CPU time hardly depends on the quota, so it tells costs apart that
// wall time under a quota of 20 ms periods would drown.
#pragma once

#include "common/base/status.h"
#include "common/protocol/slice.h"
#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

Status RunProfileRole(const RoleContext& context, const TrainingEnvironment& environment,
                      SliceRecord* record);

}  // namespace lambdadnn
