// SPDX-License-Identifier: Apache-2.0
// Why functions do not become ready, in terms of what the user can do: made of what the platform
// says of each that is pending (FunctionInstance::reason).
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

// Of the functions of these groups; nullopt while they just take their time. When several things
// hinder, that which most of them wait for.
std::optional<PendingObstacle> FindPendingObstacle(const Observations& observed,
                                                   const std::set<std::string>& groups);

}  // namespace lambdadnn
