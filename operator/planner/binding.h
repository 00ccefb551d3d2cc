// SPDX-License-Identifier: Apache-2.0
// Binding constraints of a plan: the limits whose relaxation would give a better plan.
#pragma once

#include <functional>
#include <vector>

#include "operator/planner/candidate.h"
#include "operator/planner/performance_model.h"

namespace lambdadnn {

using BetterPoint = std::function<bool(const Point&, const Point&)>;

// Any of memory, quota, functions, nodes, batch, parameterServerBandwidth. `better` decides what
// would be gained: Order::Better for a plan, Faster or Cheaper for a certificate.
std::vector<Limit> BindingLimits(const PlannerInput& input, const SearchSpace& space,
                                 PerformanceModel* model, const Order& order, const Point& point,
                                 const BetterPoint& better);

}  // namespace lambdadnn
