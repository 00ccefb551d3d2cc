// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/hand_overs.h"

#include <algorithm>
#include <cmath>

#include "common/base/statistics.h"
#include "operator/planner/exchange_rates.h"

namespace lambdadnn {
namespace {

// Of hand-overs with this standard deviation.
double SlowestOf(const AggregationPlan& plan, double deviation) {
  const double hand_overs = plan.server_layers() + 1;
  return std::sqrt(hand_overs) * deviation * ExpectedLargest(plan.workers() * plan.shards);
}

}  // namespace

double StragglerSeconds(const PlannerInput& input, const AggregationPlan& plan) {
  const bool direct = plan.transport == TransportKind::kDirect;
  if (!direct && input.platform.store_request_seconds.stated()) return 0;
  return SlowestOf(plan, direct ? DirectOf(input.profile).deviation_seconds
                                : input.profile.store_deviation_seconds);
}

double UnhinderedStragglerSeconds(const PlannerInput& input, const AggregationPlan& plan) {
  const double usual = StragglerSeconds(input, plan);
  if (plan.transport != TransportKind::kDirect) return usual;
  const double of_pair = SlowestOf(HostsPlan(2, plan.transport), 1);
  return std::max(usual, SlowestOf(plan, DirectOf(input.profile).pair_wait_seconds / of_pair));
}

}  // namespace lambdadnn
