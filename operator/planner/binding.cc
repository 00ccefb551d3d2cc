// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/binding.h"

#include <algorithm>
#include <optional>

namespace lambdadnn {
namespace {

void AddOnce(Limit limit, std::vector<Limit>* limits) {
  if (std::find(limits->begin(), limits->end(), limit) == limits->end()) limits->push_back(limit);
}

struct Neighbour {
  int functions;
  int memory_mib;
  std::optional<Limit> limit;  // of the search space that it lies beyond
};

std::vector<Neighbour> NeighboursOf(const PlannerInput& input, const SearchSpace& space,
                                    const Point& point) {
  const auto beyond = [](bool at_edge, Limit limit) {
    return at_edge ? std::optional(limit) : std::nullopt;
  };
  const int step = input.limits.memory_step_mib.value_or(input.platform.memory.step_mib);
  const int n = point.functions;
  const int m = point.memory_mib;
  std::vector<Neighbour> neighbours;
  neighbours.push_back({n, m + step, beyond(m == space.memory_mib.back(), Limit::kMemory)});
  if (m > step) {
    neighbours.push_back({n, m - step, beyond(m == space.memory_mib.front(), Limit::kMemory)});
  }
  neighbours.push_back({n + 1, m, beyond(n == space.max_functions, space.functions_limit)});
  if (n > 1) {
    neighbours.push_back({n - 1, m, beyond(n == space.min_functions, Limit::kFunctions)});
  }
  return neighbours;
}

// The best aggregation of (n, m), whether the platform allows it or not.
std::optional<Point> BestOf(const Neighbour& neighbour, PerformanceModel* model, const Order& order,
                            const BetterPoint& better) {
  std::optional<Point> best;
  const int options = model->OptionCount(neighbour.functions);
  for (int option = 0; option < options; ++option) {
    const Forecast forecast = model->Predict({neighbour.functions, neighbour.memory_mib, option});
    if (forecast.obstacle) continue;
    const Point point{order.SecondsOf(forecast.prediction), forecast.prediction.cost,
                      neighbour.functions, neighbour.memory_mib, option};
    if (!best || better(point, *best)) best = point;
  }
  return best;
}

}  // namespace

std::vector<Limit> BindingLimits(const PlannerInput& input, const SearchSpace& space,
                                 PerformanceModel* model, const Order& order, const Point& point,
                                 const BetterPoint& better) {
  std::vector<Limit> limits;
  for (const Neighbour& neighbour : NeighboursOf(input, space, point)) {
    const std::optional<Point> best = BestOf(neighbour, model, order, better);
    if (!best || !better(*best, point)) continue;
    if (neighbour.limit) AddOnce(*neighbour.limit, &limits);
    const Choice choice{best->functions, best->memory_mib, best->option};
    if (const auto obstacle = model->Obstacle(choice)) {
      AddOnce(*obstacle, &limits);
    } else if (!model->FitsOnNodes(choice)) {
      AddOnce(Limit::kNodes, &limits);
    }
  }
  if (model->BatchIsFull({point.functions, point.memory_mib, point.option})) {
    AddOnce(Limit::kBatch, &limits);
  }
  if (model->NetworkSaturated(point.functions)) {
    AddOnce(Limit::kParameterServerBandwidth, &limits);
  }
  return limits;
}

}  // namespace lambdadnn
