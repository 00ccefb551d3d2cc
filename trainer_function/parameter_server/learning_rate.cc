// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/parameter_server/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lambdadnn {

double LearningRate(const OptimizerConfig& config, int64_t iteration, int64_t iterations) {
  const auto& schedule = config.schedule;
  const int64_t warmup = schedule.warmup_iterations;
  if (iteration < warmup) {
    return config.learning_rate * static_cast<double>(iteration + 1) / static_cast<double>(warmup);
  }
  const int64_t step = iteration - warmup;
  if (schedule.name == ScheduleKind::kStep) {
    const int64_t steps = step / schedule.step_iterations;
    return config.learning_rate * std::pow(schedule.gamma, static_cast<double>(steps));
  }
  if (schedule.name == ScheduleKind::kCosine) {
    const double total = static_cast<double>(std::max<int64_t>(1, iterations - warmup));
    const double turn = 1 + std::cos(std::numbers::pi * static_cast<double>(step) / total);
    return schedule.min_learning_rate +
           (config.learning_rate - schedule.min_learning_rate) * turn / 2;
  }
  return config.learning_rate;
}

}  // namespace lambdadnn
