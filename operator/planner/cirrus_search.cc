// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "operator/planner/baselines.h"

namespace lambdadnn {

std::optional<Point> FindAsCirrus(SearchTask* task) {
  const SearchSpace& space = task->space;
  std::optional<Point> found;
  for (int n = space.min_functions;; n = std::min(2 * n, space.max_functions)) {
    const std::optional<Point> next = task->FastestOf(n, space.memory_mib.back());
    if (next) found = next;
    if ((next && task->order.Allows(*next)) || n == space.max_functions) return found;
  }
}

}  // namespace lambdadnn
