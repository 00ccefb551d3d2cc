// SPDX-License-Identifier: Apache-2.0
#include "common/plan/run_factors.h"

#include <algorithm>

namespace lambdadnn {

double& RunFactors::ExchangeOf(const AggregationPlan& plan) {
  const bool connected = plan.transport == TransportKind::kDirect;
  if (plan.placement == Placement::kDedicated) return connected ? direct : store;
  if (plan.workers() == 1) return alone;
  return connected ? direct_workers : store_workers;
}

double RunFactors::ExchangeOf(const AggregationPlan& plan) const {
  return RunFactors(*this).ExchangeOf(plan);
}

double RunFactors::Least() const {
  double least = 1;
  for (const double factor : {compute, alone, store, store_workers, direct, direct_workers}) {
    least = std::min(least, OrOne(factor));
  }
  return least;
}

}  // namespace lambdadnn
