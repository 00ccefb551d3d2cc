// SPDX-License-Identifier: Apache-2.0
// What a pass has to ask the backend, the queue and the cluster before it decides. Pure.
#pragma once

#include "operator/api/job.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

// False: no function was ever asked for.
bool WantedFunctions(const Job& job);
// False: the backend need not be asked for functions of the job.
bool MayHaveFunctions(const Job& job);
// The job is not started, or may come to need other functions.
bool NeedsQueue(const Job& job, const Platform& platform);

enum class LimitsNeed {
  kNone,      // those that the plan was made with hold
  kIfKnown,   // another process made the plan: its limits are read anew, if the cluster answers
  kRequired,  // a plan is to be made
};
// Whether the cluster's limits for functions are read in this pass.
LimitsNeed NeedOfLimits(const JobSnapshot& snapshot);

}  // namespace lambdadnn
