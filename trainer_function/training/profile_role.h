// SPDX-License-Identifier: Apache-2.0
// Role `profile` of a slice: measures on this function the inputs of the planner's model. It
// deletes every object that it stores.
//
// Fills in the record's profile_iteration_seconds (batch, forward, backward, as in training),
// profile_evaluation_samples_per_second, both without the stalls of the function's CPU quota, and
// metrics (names in protocol/slice.h). Costs are measured in CPU time, which hardly depends on the
// quota; periods of it would hide them.
#pragma once

#include "common/base/status.h"
#include "common/protocol/slice.h"
#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

Status RunProfileRole(const RoleContext& context, const TrainingEnvironment& environment,
                      SliceRecord* record);

}  // namespace lambdadnn
