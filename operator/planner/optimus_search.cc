// SPDX-License-Identifier: Apache-2.0
#include "common/plan/workload.h"
#include "operator/planner/baselines.h"

namespace lambdadnn {
namespace {

double GibOf(const Point& point) { return point.functions * point.memory_mib / kMibPerGib; }

double SecondsSavedPerGib(const Point& from, const Point& to) {
  return (from.seconds - to.seconds) / (GibOf(to) - GibOf(from));
}

}  // namespace

std::optional<Point> FindByMarginalGain(SearchTask* task) {
  const SearchSpace& space = task->space;
  std::optional<Point> current;
  size_t size = 0;
  for (; size < space.memory_mib.size() && !current; ++size) {
    current = task->FastestOf(space.min_functions, space.memory_mib[size]);
  }
  // `size` is that of the next one.
  while (current && !task->order.Allows(*current)) {
    std::optional<Point> wider;
    std::optional<Point> larger;
    if (current->functions < space.max_functions) {
      wider = task->FastestOf(current->functions + 1, current->memory_mib);
    }
    if (size < space.memory_mib.size()) {
      larger = task->FastestOf(current->functions, space.memory_mib[size]);
    }
    const double gain_wider = wider ? SecondsSavedPerGib(*current, *wider) : 0;
    const double gain_larger = larger ? SecondsSavedPerGib(*current, *larger) : 0;
    if (gain_wider <= 0 && gain_larger <= 0) break;
    if (gain_wider >= gain_larger) {
      current = wider;
    } else {
      current = larger;
      ++size;
    }
  }
  return current;
}

}  // namespace lambdadnn
