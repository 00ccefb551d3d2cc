// SPDX-License-Identifier: Apache-2.0
// Why functions do not become ready, or are ready and cannot be used, and what the user can do:
// derived from the platform's reason for each pending function (FunctionInstance::reason) and from
// how calls to the ready ones end (InstanceFact::unreachable).
#pragma once

#include <optional>
#include <set>
#include <string>

#include "operator/api/reason.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

struct PendingObstacle {
  // ImagePullFailed, Unschedulable, FunctionNotCreated or FunctionUnreachable.
  Reason reason = Reason::kUnschedulable;
  std::string message;  // how many functions, the platform's words, the next step
  friend bool operator==(const PendingObstacle&, const PendingObstacle&) = default;
};

// For the functions of these groups; nullopt while they only take their time. With several
// obstacles, the one that most functions wait for.
std::optional<PendingObstacle> FindPendingObstacle(const Observations& observed,
                                                   const std::set<std::string>& groups);

// The ready function of these groups that has been unreachable longest; nullopt while calls fail
// only as they do when a network is just being set up. One with another certificate is told at
// once, and first.
std::optional<PendingObstacle> FindUnreachable(const Observations& observed,
                                               const std::set<std::string>& groups, Instant now);

}  // namespace lambdadnn
