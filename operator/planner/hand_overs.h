// SPDX-License-Identifier: Apache-2.0
// Each shard is handed over from level to level of servers and back. An iteration ends when the
// last of n workers has got the last of K shards, which takes about the mean of as many hand-overs,
// and the slowest of n K as much longer: docs/theory.md, section 3. Pure.
#pragma once

#include "common/plan/plan.h"
#include "operator/planner/planner.h"

namespace lambdadnn {

// Seconds beyond the mean. Of one function that exchanges nothing the caller knows.
double StragglerSeconds(const PlannerInput& input, const AggregationPlan& plan);

// The same where no quota stops the functions; never less. Those that a quota stops have done all
// else when it lets them go on: what two wait for each other without is added to nothing then.
double UnhinderedStragglerSeconds(const PlannerInput& input, const AggregationPlan& plan);

}  // namespace lambdadnn
