// SPDX-License-Identifier: Apache-2.0
// Where a job's profile comes from when it need not be measured: the spec, or an earlier job like
// it, whose profile is kept; and when a kept one is used no more. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/controller/decide/policies.h"

namespace lambdadnn {

// spec.profile, if the job has one.
Decision UseGivenProfile(const JobSnapshot& snapshot);
// What is kept is read once a process and job. nullopt = there is no profile, or none that was
// measured for functions as large as the job may have now: the model is measured.
Decision UseKeptProfile(const JobSnapshot& snapshot);
// Start and release times of the kind of start that the job will make, where enough were observed.
void UseObservedStarts(const JobSnapshot& snapshot, const MeasuredOn& on, WorkloadProfile* profile);
// Once workers of the job are there: whether they differ from the function that measured the
// profile which is kept (by this job or an earlier one), so that later jobs must not use it. The
// job goes on with it.
std::optional<DropKeptProfile> DropOutdatedProfile(const JobSnapshot& snapshot,
                                                   const std::vector<BoundFunction>& bound);
// Warns with the decision when the rates of its profile were fitted badly: `why`, and what to do.
void DoubtProfile(const JobSnapshot& snapshot, const std::string& why, WriteDecision* write);

}  // namespace lambdadnn
