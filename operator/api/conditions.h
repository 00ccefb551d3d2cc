// SPDX-License-Identifier: Apache-2.0
// Conditions as the Kubernetes API keeps them: a list with one entry per type, whose
// lastTransitionTime moves only when the status does.
#pragma once

#include <string_view>
#include <vector>

#include "operator/api/job.h"

namespace lambdadnn {

// Every type that a job carries, in the order in which status lists them.
inline constexpr const char* kConditionTypes[] = {"Accepted",  "Provisioned", "Ready",    "Running",
                                                  "Suspended", "Degraded",    "Complete", "Failed"};

const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);
// True when the condition is there and its status is "True".
bool IsConditionTrue(const std::vector<Condition>& conditions, std::string_view type);

// Sets the entry of condition.type; condition.last_transition_time is ignored: it stays when the
// status does, and becomes `now` otherwise. Returns whether anything changed. A message longer than
// the schema allows is cut.
bool SetCondition(std::vector<Condition>* conditions, Condition condition, WallTime now);

}  // namespace lambdadnn
