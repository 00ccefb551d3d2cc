// SPDX-License-Identifier: Apache-2.0
// The training roles of one slice: a worker, a parameter server, or a worker with the servers in
// its function (Placement::kWorkers), each on a task of its own.
#pragma once

#include <functional>

#include "common/base/status.h"
#include "common/protocol/slice.h"
#include "trainer_function/session/slice_session.h"
#include "trainer_function/transport/role_context.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// What a worker does in its slice (RunWorkerRole, worker_role.h).
using WorkerTask = std::function<Status(SliceSession&)>;

// Runs all roles of the context's request to their end. `exchange` reaches the other functions;
// `worker` is called where there is one. Of several roles the record is the worker's, with the
// checkpoint that a root has seen completed; as one role's time is what the slice takes, so are its
// phases. The first failure ends all of them.
Status RunTrainingRoles(const RoleContext& context, Transport& exchange, const WorkerTask& worker,
                        SliceRecord* record);

}  // namespace lambdadnn
