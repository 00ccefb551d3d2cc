// SPDX-License-Identifier: Apache-2.0
// The chain of policies that decides what to do about a job: each is asked in turn, and the first
// that has an answer decides. An empty list of actions is an answer: there is nothing to do until
// something is observed.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "operator/controller/decide/action.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

// nullopt: the next policy is asked.
using Decision = std::optional<std::vector<Action>>;

struct Policy {
  const char* name;  // as the debug page shows it
  Decision (*decide)(const JobSnapshot& snapshot);
};

// In the order in which they are asked. The last one always decides.
std::span<const Policy> Policies();

struct PolicyDecision {
  const Policy* policy;
  std::vector<Action> actions;
};
// Of one step: Decide may put several of them together.
PolicyDecision AskPolicies(const JobSnapshot& snapshot);

}  // namespace lambdadnn
