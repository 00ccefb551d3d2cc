// SPDX-License-Identifier: Apache-2.0
// The ways to search a model's space: the exact one, which is the default, and those of other
// systems, for comparison (docs/theory.md, section 7). A search is a value of SearchMethod, a
// function in a file of its own, and a row in searches.cc; planner, certificates and the command
// line need no change.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "operator/planner/candidate.h"
#include "operator/planner/performance_model.h"
#include "operator/planner/space.h"

namespace lambdadnn {

// What a search is given; all of it outlives the search.
struct SearchTask {
  const PlannerInput& input;
  const SearchSpace& space;
  const Order& order;
  PerformanceModel& model;
  SearchSummary& summary;  // counts are added

  // The fastest candidate of (n, m), of equally fast ones the cheapest; empty where none can run.
  std::optional<Point> FastestOf(int functions, int memory_mib);
};

struct SearchKind {
  SearchMethod method;
  std::string_view name;   // "exact"
  std::string_view title;  // beside the name of a plan found by it; empty for the default
  std::string_view rule;   // what it does, for people
  // What it asks of a valid input beyond its model's needs; null = nothing.
  Status (*validate)(const PlannerInput& input);
  // At most one of these is set; none = the exact search.
  // What it ends with, which may miss the objective; empty = nothing.
  std::optional<Point> (*find)(SearchTask* task);
  // The part of the space in which it is the exact search.
  void (*narrow)(PlannerInput* input);
};

// The default first.
std::span<const SearchKind> SearchKinds();
const SearchKind& KindOf(SearchMethod method);
// Null when there is none of this name.
const SearchKind* FindSearch(std::string_view name);
// "exact, algorithm1, ...".
std::string SearchNames();

}  // namespace lambdadnn
