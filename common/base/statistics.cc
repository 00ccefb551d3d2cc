// SPDX-License-Identifier: Apache-2.0
#include "common/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace lambdadnn {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

double QuartileDeviation(const std::vector<double>& values) {
  constexpr double kQuartileDistance = 1.349;  // standard deviations
  return (Quantile(values, 0.75) - Quantile(values, 0.25)) / kQuartileDistance;
}

double Mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double StandardDeviation(const std::vector<double>& values) {
  const double mean = Mean(values);
  std::vector<double> squares;
  for (const double value : values) squares.push_back((value - mean) * (value - mean));
  return std::sqrt(Mean(squares));
}

// Newton's method on the distribution function, from Tukey's approximation by powers.
double NormalQuantile(double p) {
  constexpr double kLambda = 0.135;
  constexpr double kScale = 0.1975;
  constexpr int kSteps = 8;
  double quantile = (std::pow(p, kLambda) - std::pow(1 - p, kLambda)) / kScale;
  for (int step = 0; step < kSteps; ++step) {
    const double below = std::erfc(-quantile / std::numbers::sqrt2) / 2;
    const double density =
        std::exp(-quantile * quantile / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    quantile -= (below - p) / density;
  }
  return quantile;
}

double ExpectedLargest(double n) { return NormalQuantile((n - 0.375) / (n + 0.25)); }

}  // namespace lambdadnn
