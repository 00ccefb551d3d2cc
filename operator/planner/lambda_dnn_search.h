// SPDX-License-Identifier: Apache-2.0
// Searches over (n, m) under λDNN's model: the paper's Algorithm 1, and an exact one.
//
// For a given m the model is piecewise: n b_lf <= b_gmax or not, n B_fmax <= B_p or not. In each
// piece T = a/n + c + d n and C = (n m p + p_ps) T with non-negative coefficients, so both are
// convex in n: the least cost under a deadline is found by bisection on integers, and its edges and
// neighbours are decided by the model itself. docs/theory.md has the derivation.
#pragma once

#include <cstdint>
#include <optional>

#include "operator/planner/candidate.h"
#include "operator/planner/lambda_dnn_model.h"
#include "operator/planner/space.h"

namespace lambdadnn {

struct ExactResult {
  std::optional<Point> best;
  bool deadline_binds = false;  // without it there would be a cheaper plan
};

// The least cost that `order` (of aim kCost) allows, equal to the brute force over `space`. Adds
// the model evaluations to `evaluated`.
ExactResult SearchLambdaDnnExact(const LambdaDnnModel& model, const SearchSpace& space,
                                 const Order& order, int64_t* evaluated);

// Offers every candidate of the space.
void ScanLambdaDnn(const LambdaDnnModel& model, const SearchSpace& space, Collector* collector,
                   int64_t* evaluated);

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
                                      double deadline_seconds, int64_t* evaluated);

}  // namespace lambdadnn
