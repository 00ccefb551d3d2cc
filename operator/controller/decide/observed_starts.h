// SPDX-License-Identifier: Apache-2.0
// What this process has seen of the starts and releases of a job's workers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/controller/observe/snapshot.h"
#include "operator/controller/planning/start_times.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {

// From when its set was asked for, else from its creation, until it was ready; 0 = it never was, or
// nobody saw it start.
double StartSeconds(const InstanceFact& fact);

// Between the end of the last slice that the group was there for and its own end; nullopt while it
// lives, and when it ended before. `work_end` of EndOfWork.
std::optional<double> ReleaseSeconds(const InstanceFact& fact, Instant work_end);
// When the last slice of the group ended: of the profile the measuring function's, since the others
// only fill the machine. nullopt = none has ended, or one that counts has not.
std::optional<Instant> EndOfWork(const Observations& observed, GroupKind kind);

// The job's functions, of any group, that started on the instance's node while it did, itself
// counted; on all nodes together.
struct StartedAtOnce {
  int on_node = 1;
  int on_all = 1;
};
StartedAtOnce CountStarts(const Observations& observed, const InstanceFact& fact);

// Of each worker (kWorkers), or of each function that profiled (kProfile), the start and, where
// the job got to its end, the release. Left out: starts under a quota or on shared cores where the
// profile does not tell a start's CPU time, without which they say nothing about others.
std::vector<StartSample> ObservedStarts(const JobSnapshot& snapshot, GroupKind kind,
                                        const WorkloadProfile& profile);
// The same with the profile of the job's status.
std::vector<StartSample> ObservedStarts(const JobSnapshot& snapshot, GroupKind kind);

}  // namespace lambdadnn
