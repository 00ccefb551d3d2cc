// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/parameter_server/optimizer.h"

#include <algorithm>
#include <cmath>

#include "common/base/vector_clones.h"

namespace lambdadnn {
namespace {

LDNN_VECTOR_CLONES void ApplySgd(const OptimizerConfig& config, const OptimizerStep& step,
                                 std::span<float> weights, std::span<float> gradient,
                                 std::span<const std::span<float>> state) {
  const auto rate = static_cast<float>(step.learning_rate);
  const auto decay = static_cast<float>(config.weight_decay);
  const auto momentum = static_cast<float>(config.momentum);
  const auto fresh = static_cast<float>(1 - config.dampening);
  const size_t size = weights.size();
  if (decay != 0) {
    for (size_t i = 0; i < size; ++i) gradient[i] += decay * weights[i];
  }
  if (momentum != 0) {
    const std::span<float> velocity = state[0];
    if (step.updates_before == 0) {
      // PyTorch starts the velocity at the first gradient, without dampening.
      std::copy(gradient.begin(), gradient.end(), velocity.begin());
    } else {
      for (size_t i = 0; i < size; ++i) velocity[i] = momentum * velocity[i] + fresh * gradient[i];
    }
    if (config.nesterov) {
      for (size_t i = 0; i < size; ++i) gradient[i] += momentum * velocity[i];
    } else {
      std::copy(velocity.begin(), velocity.end(), gradient.begin());
    }
  }
  for (size_t i = 0; i < size; ++i) weights[i] -= rate * gradient[i];
}

LDNN_VECTOR_CLONES void ApplyAdam(const OptimizerConfig& config, const OptimizerStep& step,
                                  bool decoupled_decay, std::span<float> weights,
                                  std::span<float> gradient,
                                  std::span<const std::span<float>> state) {
  const auto updates = static_cast<double>(step.updates_before + 1);
  const double bias1 = 1 - std::pow(config.beta1, updates);
  const double bias2 = 1 - std::pow(config.beta2, updates);
  const auto step_size = static_cast<float>(step.learning_rate / bias1);
  const auto bias2_root = static_cast<float>(std::sqrt(bias2));
  const auto beta1 = static_cast<float>(config.beta1);
  const auto beta2 = static_cast<float>(config.beta2);
  const auto fresh1 = static_cast<float>(1 - config.beta1);
  const auto fresh2 = static_cast<float>(1 - config.beta2);
  const auto epsilon = static_cast<float>(config.epsilon);
  const auto decay = static_cast<float>(config.weight_decay);
  const auto keep = static_cast<float>(1 - step.learning_rate * config.weight_decay);
  const size_t size = weights.size();
  if (decay != 0 && decoupled_decay) {
    for (size_t i = 0; i < size; ++i) weights[i] *= keep;
  } else if (decay != 0) {
    for (size_t i = 0; i < size; ++i) gradient[i] += decay * weights[i];
  }
  const std::span<float> mean = state[0];
  const std::span<float> square = state[1];
  for (size_t i = 0; i < size; ++i) {
    mean[i] = beta1 * mean[i] + fresh1 * gradient[i];
    square[i] = beta2 * square[i] + fresh2 * (gradient[i] * gradient[i]);
  }
  std::span<float> scale = square;
  if (config.amsgrad) {
    scale = state[2];
    for (size_t i = 0; i < size; ++i) scale[i] = std::max(scale[i], square[i]);
  }
  for (size_t i = 0; i < size; ++i) {
    weights[i] -= step_size * (mean[i] / (std::sqrt(scale[i]) / bias2_root + epsilon));
  }
}

Status CheckSchedule(const OptimizerConfig::Schedule& schedule) {
  if (schedule.warmup_iterations < 0) {
    return InvalidArgumentError("optimizer.schedule.warmupIterations must not be negative");
  }
  if (schedule.name == ScheduleKind::kStep && schedule.step_iterations < 1) {
    return InvalidArgumentError("optimizer.schedule.stepIterations must be at least 1");
  }
  if (!(schedule.power > 0)) {
    return InvalidArgumentError("optimizer.schedule.power must be greater than 0");
  }
  return OkStatus();
}

}  // namespace

Status ValidateOptimizer(const OptimizerConfig& config) {
  if (!(config.learning_rate >= 0)) {
    return InvalidArgumentError("optimizer.learningRate must not be negative");
  }
  if (!(config.momentum >= 0) || !(config.weight_decay >= 0)) {
    return InvalidArgumentError("optimizer.momentum and .weightDecay must not be negative");
  }
  if (config.nesterov && (config.momentum <= 0 || config.dampening != 0)) {
    return InvalidArgumentError("optimizer.nesterov needs a momentum and no dampening");
  }
  if (!(config.beta1 >= 0 && config.beta1 < 1) || !(config.beta2 >= 0 && config.beta2 < 1)) {
    return InvalidArgumentError("optimizer.beta1 and .beta2 must be in [0, 1)");
  }
  if (!(config.epsilon >= 0)) {
    return InvalidArgumentError("optimizer.epsilon must not be negative");
  }
  if ((config.clip_value && !(*config.clip_value > 0)) ||
      (config.clip_global_norm && !(*config.clip_global_norm > 0))) {
    return InvalidArgumentError("optimizer.clipValue and .clipGlobalNorm must be greater than 0");
  }
  return CheckSchedule(config.schedule);
}

int OptimizerStateVectors(const OptimizerConfig& config) {
  if (config.name == OptimizerKind::kSgd) return config.momentum != 0 ? 1 : 0;
  return config.amsgrad ? 3 : 2;
}

void ApplyOptimizer(const OptimizerConfig& config, const OptimizerStep& step,
                    std::span<float> weights, std::span<float> gradient,
                    std::span<const std::span<float>> state) {
  LDNN_CHECK(gradient.size() == weights.size(), "gradient and weights differ in size");
  LDNN_CHECK(static_cast<int>(state.size()) == OptimizerStateVectors(config), "wrong state");
  for (const auto& vector : state) LDNN_CHECK(vector.size() == weights.size(), "wrong state size");
  if (config.name == OptimizerKind::kSgd) {
    ApplySgd(config, step, weights, gradient, state);
  } else {
    ApplyAdam(config, step, config.name == OptimizerKind::kAdamW, weights, gradient, state);
  }
}

}  // namespace lambdadnn
