// SPDX-License-Identifier: Apache-2.0
// What the planner is asked on behalf of a job. Pure.
#pragma once

#include "operator/api/job.h"
#include "operator/planner/planner.h"

namespace lambdadnn {

// `elapsed_seconds` and `spent` (US dollars) of the job so far are taken off its deadline or
// budget. `explain` = with runners-up and Pareto front. Needs status.profile.
PlannerInput PlannerInputOf(const Job& job, const Platform& platform, double elapsed_seconds,
                            double spent, bool explain);

}  // namespace lambdadnn
