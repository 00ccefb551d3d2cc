// SPDX-License-Identifier: Apache-2.0
// A snapshot and its decision as JSON, for the debug page of a controller. Holds no secret: no key,
// no environment of functions.
#pragma once

#include <vector>

#include "common/json/json_reader.h"
#include "operator/controller/decide/action.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

Json SnapshotToJson(const JobSnapshot& snapshot);
// The name of each action with what it is about.
Json ActionsToJson(const std::vector<Action>& actions);

}  // namespace lambdadnn
