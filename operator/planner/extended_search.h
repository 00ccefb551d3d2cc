// SPDX-License-Identifier: Apache-2.0
// The exact search over (n, m, K, layers, spread) under the extended model. A pair (n, m) is left
// out only when a lower bound on its time and cost shows that none of its aggregations can change
// what the collector keeps.
#pragma once

#include <cstdint>
#include <optional>

#include "operator/planner/candidate.h"
#include "operator/planner/extended_model.h"
#include "operator/planner/space.h"

namespace lambdadnn {

// Offers every candidate that can matter. Returns, when nothing at all can run, the obstacle of the
// candidate that came closest (in the order memory, quota, functions, timeout).
Obstacle SearchExtended(const ExtendedModel& model, const SearchSpace& space, Collector* collector,
                        int64_t* evaluated);

}  // namespace lambdadnn
