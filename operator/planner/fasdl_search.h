// SPDX-License-Identifier: Apache-2.0
// FasDL's heuristic, over its own model (docs/theory.md, section 6): B at which a step reaches 80 %
// of the highest rate; for each W, with K = W, the first M that is in time and cheaper than what
// was found before; then fewer K while the time falls.
#pragma once

#include <optional>

#include "operator/planner/fasdl_model.h"
#include "operator/planner/searches.h"

namespace lambdadnn {

// b/(1/0.8 - 1) = 4 b, rounded.
int HeuristicBatch(const FasDlModel& model);
// kInvalidArgument where the profile gives no b.
Status RequireHeuristicBatch(const PlannerInput& input);
std::optional<Point> FindByFasDl(SearchTask* task);

}  // namespace lambdadnn
