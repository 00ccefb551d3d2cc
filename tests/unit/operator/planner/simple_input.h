// SPDX-License-Identifier: Apache-2.0
// An input of the extended model that is easy to calculate with.
#pragma once

#include "operator/planner/planner.h"

namespace lambdadnn {

// 100 samples in batches of 30 on rates that make mental arithmetic easy.
inline PlannerInput Simple() {
  PlannerInput input;
  input.profile.training_samples = 100;
  input.profile.training_bytes = 1000;
  input.profile.model_bytes = 4 * 16384;
  input.profile.training_rate = {.intercept = 10};
  input.limits.global_batch_size = 30;
  input.limits.epochs = 2;
  input.platform.memory = {.min_mib = 128, .max_mib = 1024, .step_mib = 128};
  input.platform.function_timeout_seconds = 0;
  input.platform.prices.gib_second = 1;
  input.objective.fixed = Objective::Fixed{4, 1024};
  input.aggregation.placement = Placement::kDedicated;
  input.options.checkpoint_interval_seconds = 0;
  return input;
}

inline PlanCandidate Predicted(const PlannerInput& input) {
  const Objective::Fixed fixed = *input.objective.fixed;
  return PredictPlan(input, fixed.functions, fixed.memory_mib).value();
}

}  // namespace lambdadnn
