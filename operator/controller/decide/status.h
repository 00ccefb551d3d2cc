// SPDX-License-Identifier: Apache-2.0
// What a job's status should say: a pure function of the snapshot. Decisions that must outlive the
// process (WriteDecision) are laid over it.
#pragma once

#include "operator/controller/decide/action.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

JobStatus ComputeStatus(const JobSnapshot& snapshot);
JobStatus ComputeStatus(const JobSnapshot& snapshot, const WriteDecision& decision);

// Who has just taken the job over has asked for the streams of its slices, or is about to, and has
// heard of none: what status says of them stands.
bool IsJoining(const JobSnapshot& snapshot);

// Whether the two differ in more than measurements (progress, usage), which are written less often.
bool DiffersInSubstance(const JobStatus& a, const JobStatus& b);

// Conditions of `after` that are not in `before` with the same status and reason.
std::vector<Condition> ChangedConditions(const JobStatus& before, const JobStatus& after);

}  // namespace lambdadnn
