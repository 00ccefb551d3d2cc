// SPDX-License-Identifier: Apache-2.0
// Algorithm 1 of λDNN's paper, kept for comparison: another search over λDNN's model.
#pragma once

#include <cstdint>
#include <optional>

#include "operator/planner/candidate.h"
#include "operator/planner/lambda_dnn_model.h"
#include "operator/planner/space.h"

namespace lambdadnn {

// The bounds between which Algorithm 1 scans n; no scan when lower > upper or lower == 0 (no n at
// this m meets the deadline).
struct FunctionBounds {
  int64_t lower = 0;
  int64_t upper = 0;
};
FunctionBounds Algorithm1Bounds(const LambdaDnnModel& model, const MemoryTerms& memory,
                                double deadline_seconds);

// Algorithm 1 as published: for each m the first n within the bounds that meets the deadline, and
// of these the cheapest. `space` bounds n as well.
std::optional<Point> SearchAlgorithm1(const LambdaDnnModel& model, const SearchSpace& space,
                                      double deadline_seconds, SearchSummary* summary);

}  // namespace lambdadnn
