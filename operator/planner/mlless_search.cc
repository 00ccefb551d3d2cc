// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/baselines.h"

namespace lambdadnn {

std::optional<Point> FindByScaleIn(SearchTask* task) {
  const SearchSpace& space = task->space;
  const int largest_mib = space.memory_mib.back();
  std::optional<Point> current;
  for (int n = space.max_functions; n >= space.min_functions; --n) {
    const std::optional<Point> fewer = task->FastestOf(n, largest_mib);
    if (current && (!fewer || fewer->seconds > current->seconds)) break;
    current = fewer;
  }
  return current;
}

}  // namespace lambdadnn
