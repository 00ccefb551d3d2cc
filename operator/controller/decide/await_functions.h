// SPDX-License-Identifier: Apache-2.0
// Functions that were asked for, until all of them are ready: those of the plan and of the
// profiler. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operator/controller/decide/action.h"

namespace lambdadnn {

struct GroupNeed {
  std::string group;
  int count = 0;
};

// The state of the functions of some groups.
struct FunctionStarts {
  bool all_ready = true;
  bool all_there = true;
  // Ended by themselves before they were ever ready.
  int ended_early = 0;
  const InstanceFact* last_ended = nullptr;  // of those
};
// Of the job's plan.
std::vector<GroupNeed> PlannedNeeds(const JobSnapshot& snapshot);
FunctionStarts ViewStarts(const Observations& observed, std::span<const GroupNeed> needs);
// Ended by itself (not by the platform) before it was ever ready.
bool EndedEarly(const InstanceFact& fact);

// For starts that are not all ready: `ensure` asks for all functions, and all are released when
// they are not ready in time.
std::vector<Action> AwaitFunctions(const JobSnapshot& snapshot, const FunctionStarts& starts,
                                   const Action& ensure);

// Releases the functions of a failed start; the next start backs off for twice as long.
Action GiveUpStart(const JobSnapshot& snapshot);

}  // namespace lambdadnn
