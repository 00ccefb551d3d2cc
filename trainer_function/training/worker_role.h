// SPDX-License-Identifier: Apache-2.0
// Role `worker` of a slice: its share of every batch forward and backward, gradients up, weights
// down; its share of the test set at the ends of epochs. Worker 0 also initialises a fresh job and
// writes the finished model.
#pragma once

#include "common/base/status.h"
#include "trainer_function/session/slice_session.h"
#include "trainer_function/training/training_environment.h"

namespace lambdadnn {

// As RunServerRole (parameter_server/server_role.h).
Status RunWorkerRole(SliceSession& session, const TrainingEnvironment& environment);

}  // namespace lambdadnn
