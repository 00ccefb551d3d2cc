// SPDX-License-Identifier: Apache-2.0
// How functions count samples whose classes have weights (spec.training.classWeights). Pure.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/protocol/training_config.h"

namespace lambdadnn {

// Of each class.
inline constexpr double kLeastClassWeight = 0.01;
inline constexpr double kMostClassWeight = 100;
// Exchanged objects say of how many samples they are sums; with class weights, of how many of these
// units of weight, of which every float32 from kLeastClassWeight on has a whole number. So sums of
// them are exact, whoever adds them in whatever order.
inline constexpr double kClassWeightUnit = 0x1p-30;

// What an exchanged object says for the samples of a step, whose classes' weights are `weight_sum`.
inline int64_t CountOf(const TrainingConfig& training, int64_t samples, double weight_sum) {
  if (training.class_weights.empty()) return samples;
  return std::llround(weight_sum / kClassWeightUnit);
}
// What sums over so many are divided by for their mean, as PyTorch's losses divide them.
inline double DivisorOf(const TrainingConfig& training, int64_t count) {
  return static_cast<double>(count) * (training.class_weights.empty() ? 1 : kClassWeightUnit);
}

}  // namespace lambdadnn
