// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/parameter_server/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lambdadnn {

namespace {

// PyTorch's OneCycleLR with its default factors: up along half a cosine, and down along another.
constexpr double kOneCycleBegin = 25;  // the peak is so many times the first rate
constexpr double kOneCycleEnd = 1e4;   // and the first one so many times the last
constexpr double kOneCycleRise = 0.3;  // of all iterations

// From one value to another along half a cosine; `share` of the way.
double AlongCosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

double OneCycle(double peak, int64_t warmup, int64_t iteration, int64_t iterations) {
  const double last = static_cast<double>(iterations - 1);
  const double rise =
      (warmup > 0 ? static_cast<double>(warmup) : kOneCycleRise * static_cast<double>(iterations)) -
      1;
  const double first = peak / kOneCycleBegin;
  const auto at = static_cast<double>(iteration);
  if (at <= rise) return rise > 0 ? AlongCosine(first, peak, at / rise) : peak;
  return AlongCosine(peak, first / kOneCycleEnd, std::min(1.0, (at - rise) / (last - rise)));
}

}  // namespace

double LearningRate(const OptimizerConfig& config, int64_t iteration, int64_t iterations) {
  const auto& schedule = config.schedule;
  const int64_t warmup = schedule.warmup_iterations;
  if (schedule.name == ScheduleKind::kOneCycle) {
    return OneCycle(config.learning_rate, warmup, iteration, iterations);
  }
  if (iteration < warmup) {
    return config.learning_rate * static_cast<double>(iteration + 1) / static_cast<double>(warmup);
  }
  const int64_t step = iteration - warmup;
  if (schedule.name == ScheduleKind::kStep) {
    const int64_t steps = step / schedule.step_iterations;
    return config.learning_rate * std::pow(schedule.gamma, static_cast<double>(steps));
  }
  const double total = static_cast<double>(std::max<int64_t>(1, iterations - warmup));
  const double share = static_cast<double>(step) / total;
  if (schedule.name == ScheduleKind::kCosine) {
    const double turn = 1 + std::cos(std::numbers::pi * share);
    return schedule.min_learning_rate +
           (config.learning_rate - schedule.min_learning_rate) * turn / 2;
  }
  if (schedule.name == ScheduleKind::kPolynomial) {
    return schedule.min_learning_rate + (config.learning_rate - schedule.min_learning_rate) *
                                            std::pow(std::max(0.0, 1 - share), schedule.power);
  }
  return config.learning_rate;
}

}  // namespace lambdadnn
