// SPDX-License-Identifier: Apache-2.0
// The workloads and the platform of λDNN's paper (docs/theory.md, section 1), for figures that are
// published: what `lambdadnn predict --paper` prints, and tests. Without a deadline that binds.
#pragma once

#include "operator/planner/planner.h"

namespace lambdadnn {

inline Platform LambdaPlatform() {
  Platform platform;
  platform.memory = {.min_mib = 128, .max_mib = 3008, .step_mib = 64};
  platform.max_functions = 200;
  platform.function_timeout_seconds = 900;
  platform.function_network_bytes_per_second = 84e6;
  platform.parameter_server_network_bytes_per_second = 1200e6;
  platform.parameter_server_price_per_second = 2.6e-5;
  platform.store_bytes_per_second = 115e6;
  platform.prices.gib_second = 1.66667e-5;
  return platform;
}

inline PlannerInput Workload(double training_bytes, int64_t samples, double model_bytes,
                             int local_batch, int largest_batch, TrainingRate rate, int min_memory,
                             double epochs) {
  PlannerInput input;
  input.profile.training_bytes = training_bytes;
  input.profile.training_samples = samples;
  input.profile.model_bytes = model_bytes;
  input.profile.training_rate = std::move(rate);
  input.limits.epochs = epochs;
  input.limits.local_batch_size = local_batch;
  input.limits.max_global_batch_size = largest_batch;
  input.limits.min_memory_mib = min_memory;
  input.platform = LambdaPlatform();
  input.objective.deadline_seconds = 1e6;
  input.options.model = PredictionModel::kLambdaDnn;
  return input;
}

inline PlannerInput OneDCnn(double epochs) {
  return Workload(41.1e6, 15000, 2e6, 32, 512, {.slope = 0.1, .intercept = -8.8}, 960, epochs);
}
inline PlannerInput MobileNet(double epochs) {
  return Workload(148e6, 50000, 18e6, 64, 512, {.slope = 0.03, .intercept = 5.6}, 1728, epochs);
}
inline PlannerInput ResNet50(double epochs) {
  return Workload(148e6, 50000, 98e6, 128, 1024, {.slope = 0.003, .intercept = 11.3}, 2496, epochs);
}

}  // namespace lambdadnn
