// SPDX-License-Identifier: Apache-2.0
// Algorithm 1 of λDNN's paper, kept for comparison: another search over λDNN's model. Its inner
// loop can be read in two ways, and both are here. A saving is claimed against the cheaper one.
#pragma once

#include <cstdint>
#include <optional>

#include "operator/planner/candidate.h"
#include "operator/planner/lambda_dnn_model.h"
#include "operator/planner/searches.h"

namespace lambdadnn {

// The bounds between which Algorithm 1 scans n; no scan when lower > upper or lower == 0 (no n at
// this m meets the deadline).
struct FunctionBounds {
  int64_t lower = 0;
  int64_t upper = 0;
};
FunctionBounds Algorithm1Bounds(const LambdaDnnModel& model, const MemoryTerms& memory,
                                double deadline_seconds);

// Both scan, for each m in ascending order, n between the bounds, and return the cheapest plan seen
// at which a scan ended. A scan ends at the first n in time
//   FindByAlgorithm1       that is not dearer than the cheapest so far
//   FindByAlgorithm1First  whatever it costs
std::optional<Point> FindByAlgorithm1(SearchTask* task);
std::optional<Point> FindByAlgorithm1First(SearchTask* task);

}  // namespace lambdadnn
