// SPDX-License-Identifier: Apache-2.0
#include "common/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lambdadnn {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
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

double ExpectedLargest(double n) {
  constexpr double kLambda = 0.135;
  constexpr double kScale = 0.1975;
  const double p = (n - 0.375) / (n + 0.25);
  return (std::pow(p, kLambda) - std::pow(1 - p, kLambda)) / kScale;
}

}  // namespace lambdadnn
