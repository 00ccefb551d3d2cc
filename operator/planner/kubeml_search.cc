// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "operator/planner/baselines.h"

namespace lambdadnn {
namespace {

constexpr double kGrowUpTo = 1.05;
constexpr double kShrinkFrom = 1.2;
// Where n has neither settled nor reached its limits, it goes to and fro.
constexpr double kMostEpochs = 200;

}  // namespace

std::optional<Point> FindByElasticity(SearchTask* task) {
  const SearchSpace& space = task->space;
  const int largest_mib = space.memory_mib.back();
  const double epochs = std::min(std::ceil(task->input.limits.epochs), kMostEpochs);
  std::optional<Point> current = task->FastestOf(space.min_functions, largest_mib);
  // An epoch takes the same share of the run at every n, so that whole runs can be compared.
  double seconds_before = 0;
  for (int epoch = 1; current && epoch < epochs; ++epoch) {
    const double seconds = current->seconds;
    int step = 0;
    if (seconds_before == 0 || seconds <= kGrowUpTo * seconds_before) {
      step = 1;
    } else if (seconds >= kShrinkFrom * seconds_before) {
      step = -1;
    }
    const int n = std::clamp(current->functions + step, space.min_functions, space.max_functions);
    if (n == current->functions) break;  // and so it stays
    seconds_before = seconds;
    const std::optional<Point> next = task->FastestOf(n, largest_mib);
    if (!next) break;
    current = next;
  }
  return current;
}

}  // namespace lambdadnn
