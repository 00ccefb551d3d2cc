// SPDX-License-Identifier: Apache-2.0
// What each search finds for the same input, beside the exact one: `lambdadnn plan --compare`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "operator/planner/searches.h"

namespace lambdadnn {

struct ComparedSearch {
  const SearchKind* kind = nullptr;
  // Its plan, or what it ends with where that misses the objective; empty = nothing.
  std::optional<PlanCandidate> candidate;
  bool feasible = false;
  std::string reason;  // why not
  // By which share of the exact plan's value the objective's value (cost, time or both multiplied)
  // is above it; of feasible ones.
  double above_exact = 0;
};

struct Comparison {
  std::vector<ComparedSearch> searches;  // the exact one first
  struct LeftOut {
    const SearchKind* kind = nullptr;
    std::string reason;
  };
  std::vector<LeftOut> left_out;  // what this model, objective or profile gives nothing to
  // The saving of the exact plan against the cheaper reading of Algorithm 1; empty without one.
  std::optional<double> saved;
  const SearchKind* cheaper_reading = nullptr;
  // As of every outcome.
  CostMeasure measure = CostMeasure::kPrices;
  std::string currency;

  bool feasible() const { return !searches.empty() && searches.front().feasible; }
};

// By every search that the input allows, whatever input.options.search is. An error of the input
// itself, which the exact search would have as well.
Result<Comparison> CompareSearches(const PlannerInput& input);

std::string FormatComparison(const std::string& title, const Comparison& comparison);
// docs/formats.md, "lambdadnn plan -o json".
Json ComparisonToJson(const Comparison& comparison);

}  // namespace lambdadnn
