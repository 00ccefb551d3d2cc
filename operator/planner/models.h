// SPDX-License-Identifier: Apache-2.0
// The models of time and cost, with their names. A model is a value of PredictionModel, a file that
// implements PerformanceModel, and a row in models.cc; the searches, certificates, the command line
// and the controller need no change.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "operator/planner/performance_model.h"

namespace lambdadnn {

struct ModelKind {
  PredictionModel model;
  std::string_view name;   // "extended"
  std::string_view title;  // beside the name of a plan made by it; empty for the default
  // Its predictions have deviations, so that deadlines are met with the objective's confidence.
  bool tells_deviations;
  // What this model asks of the input beyond ValidateInput().
  Status (*validate)(const PlannerInput& input);
  // `input` outlives the model.
  std::unique_ptr<PerformanceModel> (*make)(const PlannerInput& input, const SearchSpace& space);
};

// The default first.
std::span<const ModelKind> ModelKinds();
const ModelKind& KindOf(PredictionModel model);
// Null when there is none of this name.
const ModelKind* FindModel(std::string_view name);
// "extended, lambdadnn, ...".
std::string ModelNames();

}  // namespace lambdadnn
