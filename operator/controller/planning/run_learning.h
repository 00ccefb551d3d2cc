// SPDX-License-Identifier: Apache-2.0
// What a run that has ended shows of the model: the times of its iterations over those that were
// predicted, for the profile that is kept for later jobs of the same ProfileSignature
// (docs/theory.md, section 11).
// Pure.
#pragma once

#include <cstdint>

#include "common/plan/plan.h"
#include "common/plan/run_factors.h"
#include "common/plan/time_factors.h"
#include "common/plan/workload.h"
#include "operator/controller/planning/kept_profile.h"

namespace lambdadnn {

// What one of the workers spent since the plan in force was predicted, on average; seconds.
struct RunTimes {
  int64_t iterations = 0;
  double compute = 0;
  double exchange = 0;
  double evaluation = 0;
};

// The factors by which `profile`, whose times were multiplied by `corrections` besides, would have
// predicted these times of `plan`. Those of exchanges of other kinds, and of what was not predicted
// or not done, are 0; all of a run of too few iterations.
RunFactors FactorsShown(const WorkloadProfile& profile, const TimeFactors& corrections,
                        const Plan& plan, const RunTimes& took);

// Changes the factors of `kept` by what a run has shown that was planned with `profile`: each is
// half way, as a ratio, from what runs before it showed to what it shows itself, since runs differ,
// and so do machines from day to day. False, and nothing is changed, when `profile` was not made
// from `kept`.
bool LearnFromRun(const WorkloadProfile& profile, const RunFactors& shown, KeptProfile* kept);

}  // namespace lambdadnn
