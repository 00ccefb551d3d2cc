// SPDX-License-Identifier: Apache-2.0
// The status of a job as a pure function of the snapshot. Decisions that must outlive the process
// (WriteDecision) replace fields of it.
#pragma once

#include "operator/controller/decide/action.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

JobStatus ComputeStatus(const JobSnapshot& snapshot);
JobStatus ComputeStatus(const JobSnapshot& snapshot, const WriteDecision& decision);

// This process has just taken the job over and has not heard of its slices yet: what status says of
// them is kept.
bool IsJoining(const JobSnapshot& snapshot);

// The place in the queue that `status` tells of, from 1; 0 = the job does not wait in it, or its
// place is not known.
int PlaceInQueue(const JobSnapshot& snapshot, const JobStatus& status);
// Whether a change of the place is to be told at once: the job has become the next, or is no
// longer.
bool IsPlaceNews(int told, int now);

// Whether the two differ in more than measurements (progress, usage, the place in the queue), which
// are written less often. With `place_is_news` the place counts.
bool DiffersInSubstance(const JobStatus& a, const JobStatus& b, bool place_is_news);

// Conditions of `after` that are not in `before` with the same status and reason.
std::vector<Condition> ChangedConditions(const JobStatus& before, const JobStatus& after);

}  // namespace lambdadnn
