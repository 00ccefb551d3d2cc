// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/binding.h"

#include <algorithm>
#include <iterator>

namespace lambdadnn {
namespace {

// Collects names without repeating one.
class Names {
 public:
  void Add(const std::string& name) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
  }
  std::vector<std::string> Take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
};

struct Neighbour {
  int functions;
  int memory_mib;
  const char* limit;  // the limit of the search space that it lies beyond; null inside
};

std::vector<Neighbour> NeighboursOf(const PlannerInput& input, const SearchSpace& space,
                                    const Point& point) {
  const int step = input.limits.memory_step_mib.value_or(input.platform.memory.step_mib);
  const int n = point.functions;
  const int m = point.memory_mib;
  std::vector<Neighbour> neighbours;
  neighbours.push_back({n, m + step, m == space.memory_mib.back() ? "memory" : nullptr});
  if (m > step) {
    neighbours.push_back({n, m - step, m == space.memory_mib.front() ? "memory" : nullptr});
  }
  const char* beyond = n == space.max_functions ? space.functions_limit : nullptr;
  neighbours.push_back({n + 1, m, beyond});
  if (n > 1) neighbours.push_back({n - 1, m, n == space.min_functions ? "functions" : nullptr});
  return neighbours;
}

}  // namespace

std::vector<std::string> BindingLimits(const PlannerInput& input, const SearchSpace& space,
                                       const SearchModel& model, const Point& point,
                                       const SearchModel::Better& better) {
  Names names;
  for (const Neighbour& neighbour : NeighboursOf(input, space, point)) {
    const std::optional<Point> probe =
        model.Probe(neighbour.functions, neighbour.memory_mib, better);
    if (!probe || !better(*probe, point)) continue;
    if (neighbour.limit != nullptr) names.Add(neighbour.limit);
    const Obstacle obstacle = model.ObstacleOf(*probe);
    if (obstacle != Obstacle::kNone && obstacle != Obstacle::kTimeout) {
      names.Add(ObstacleName(obstacle));
    }
  }
  if (Batches(input).Shrinks(point.functions)) names.Add("batch");
  if (model.ServerSaturated(point.functions)) names.Add("parameterServerBandwidth");
  return names.Take();
}

}  // namespace lambdadnn
