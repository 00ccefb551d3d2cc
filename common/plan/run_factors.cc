// SPDX-License-Identifier: Apache-2.0
#include "common/plan/run_factors.h"

#include <algorithm>
#include <cmath>

namespace lambdadnn {
namespace {

constexpr double RunFactors::* kExchanges[] = {
    &RunFactors::alone,  &RunFactors::store,          &RunFactors::store_workers,
    &RunFactors::direct, &RunFactors::direct_workers,
};

}  // namespace

double& RunFactors::ExchangeOf(const AggregationPlan& plan) {
  const bool connected = plan.transport == TransportKind::kDirect;
  if (plan.placement == Placement::kDedicated) return connected ? direct : store;
  if (plan.workers() == 1) return alone;
  return connected ? direct_workers : store_workers;
}

double RunFactors::ExchangeFactor(const AggregationPlan& plan) const {
  const double shown = RunFactors(*this).ExchangeOf(plan);
  if (shown > 0) return shown;
  double product = 1;
  int known = 0;
  for (const auto exchange : kExchanges) {
    if (this->*exchange <= 0) continue;
    product *= this->*exchange;
    ++known;
  }
  return known > 0 ? std::pow(product, 1.0 / known) : 1;
}

double RunFactors::Least() const {
  double least = std::min(1.0, OrOne(compute));
  for (const auto exchange : kExchanges) least = std::min(least, OrOne(this->*exchange));
  return least;
}

}  // namespace lambdadnn
