// SPDX-License-Identifier: Apache-2.0
// Where a job's profile comes from when it need not be measured: the spec, or an earlier job like
// it, whose profile is cached. Pure.
#pragma once

#include <string>

#include "operator/controller/decide/policies.h"

namespace lambdadnn {

// spec.profile, if the job has one.
Decision UseGivenProfile(const JobSnapshot& snapshot);
// The cache is read once a process and job. nullopt = it holds no profile: the model is measured.
Decision UseCachedProfile(const JobSnapshot& snapshot);
// Warns with the decision when the rates of its profile were fitted badly: `why`, and what to do.
void DoubtProfile(const JobSnapshot& snapshot, const std::string& why, WriteDecision* write);

}  // namespace lambdadnn
