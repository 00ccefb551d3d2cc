// SPDX-License-Identifier: Apache-2.0
// Why functions do not become ready, and what the user can do: derived from the platform's reason
// for each pending function (FunctionInstance::reason).
#pragma once

#include <optional>
#include <set>
#include <string>

#include "operator/api/reason.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

struct PendingObstacle {
  // ImagePullFailed, Unschedulable or FunctionNotCreated.
  Reason reason = Reason::kUnschedulable;
  std::string message;  // how many functions, the platform's words, the next step
  friend bool operator==(const PendingObstacle&, const PendingObstacle&) = default;
};

// For the functions of these groups; nullopt while they only take their time. With several
// obstacles, the one that most functions wait for.
std::optional<PendingObstacle> FindPendingObstacle(const Observations& observed,
                                                   const std::set<std::string>& groups);

}  // namespace lambdadnn
