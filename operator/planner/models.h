// SPDX-License-Identifier: Apache-2.0
// The models of time and cost, and the ways to search, with their names. A model is a value of
// PredictionModel, a file that implements PerformanceModel, and a row in models.cc; the search,
// certificates, the command line and the controller need no change.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "operator/planner/performance_model.h"

namespace lambdadnn {

struct ModelKind {
  PredictionModel model;
  std::string_view name;   // "extended"
  std::string_view title;  // beside the name of a plan made by it; empty for the default
  // What this model asks of the input beyond ValidateInput().
  Status (*validate)(const PlannerInput& input);
  // `input` outlives the model.
  std::unique_ptr<PerformanceModel> (*make)(const PlannerInput& input, const SearchSpace& space);
};

struct SearchKind {
  SearchMethod method;
  std::string_view name;   // "exact"
  std::string_view title;  // likewise
};

// The default first.
std::span<const ModelKind> ModelKinds();
std::span<const SearchKind> SearchKinds();
const ModelKind& KindOf(PredictionModel model);
const SearchKind& KindOf(SearchMethod method);
// Null when there is none of this name.
const ModelKind* FindModel(std::string_view name);
const SearchKind* FindSearch(std::string_view name);

}  // namespace lambdadnn
