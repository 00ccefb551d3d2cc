// SPDX-License-Identifier: Apache-2.0
// Which sizes of a profile are measured: the largest, and then those that a plan would use, until
// the size that it would use has been measured. The others are derived. Pure.
#pragma once

#include <optional>
#include <vector>

#include "operator/api/job.h"
#include "operator/controller/planning/planning.h"
#include "operator/controller/planning/profile_fit.h"

namespace lambdadnn {

// A sample of each size of `plan`: as measured, or derived from the next larger measured one. None
// is faster than the CPU quota of its size lets steps be that go on for long.
// `measured` has the largest.
std::vector<ProfileSample> WithDerivedSamples(const std::vector<ProfileSample>& measured,
                                              const Platform& platform, const ProfilePlan& plan);

// The size to measure next; nullopt = the plan's has been measured. Where no plan can be made of
// what is known so far, the largest that is left. Costs a search for a plan.
std::optional<int> NextProfileSize(const Job& job, const Platform& platform, const JobSpent& spent,
                                   const ProfilePlan& plan,
                                   const std::vector<ProfileSample>& measured);

}  // namespace lambdadnn
