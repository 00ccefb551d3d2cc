// SPDX-License-Identifier: Apache-2.0
// Whether the functions of a running job tell each other what lies in its store, and why not. Pure.
#pragma once

#include <optional>

#include "operator/api/conditions.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

// The condition PeersConnected for this status; nullopt = there is nothing (new) to say. It is
// False where the spec leaves functions without connections, or some of them do not reach others;
// then True once all do.
std::optional<Condition> PeersConditionOf(const JobSnapshot& snapshot, const JobStatus& status);

}  // namespace lambdadnn
