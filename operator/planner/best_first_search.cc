// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/best_first_search.h"

#include <algorithm>
#include <functional>

namespace lambdadnn {

void BestFirstSearch::Run(const SearchSpace& space) {
  const Box whole{.first_functions = space.min_functions,
                  .last_functions = space.max_functions,
                  .first_size = 0,
                  .last_size = static_cast<int>(space.memory_mib.size()) - 1};
  summary_.pairs += whole.Pairs();
  Explore(whole, space.memory_mib, 0);
}

// Depth first below the best part, so that no more than one path of parts is kept.
void BestFirstSearch::Explore(const Box& box, const std::vector<int>& sizes, size_t depth) {
  if (levels_.size() <= depth) levels_.emplace_back();
  Level& level = levels_[depth];
  level.parts.clear();
  level.order.clear();
  boxes_.clear();
  model_.Split(box, ceiling_, &boxes_);
  for (const Box& part : boxes_) {
    if (collector_.Satisfied()) return;
    Consider(part, sizes, &level.parts);
  }
  for (const Part& part : level.parts) level.order.push_back({part.rank, level.order.size()});
  std::make_heap(level.order.begin(), level.order.end(), std::greater<>());
  while (!level.order.empty() && !collector_.Satisfied()) {
    if (collector_.IsClosedTo(level.order.front().first)) break;
    std::pop_heap(level.order.begin(), level.order.end(), std::greater<>());
    const Part next = level.parts[level.order.back().second];
    level.order.pop_back();
    if (!collector_.CanImprove(next.least)) {
      LeaveOut(next.box, next.least);
    } else if (next.box.IsOne()) {
      Try({next.least.functions, next.least.memory_mib, next.least.option});
    } else {
      Explore(next.box, sizes, depth + 1);
    }
  }
  for (const auto& [rank, index] : level.order) {
    LeaveOut(level.parts[index].box, level.parts[index].least);
  }
}

void BestFirstSearch::Consider(const Box& box, const std::vector<int>& sizes,
                               std::vector<Part>* parts) {
  const int memory_mib = sizes[static_cast<size_t>(box.first_size)];
  const Bound bound = model_.LowerBound(box, ceiling_);
  const Point least{bound.seconds, bound.cost, box.first_functions, memory_mib, box.first_option};
  if (!collector_.CanImprove(least)) {
    LeaveOut(box, least);
  } else {
    parts->push_back({box, least, collector_.order().Rank(bound.seconds, bound.cost)});
  }
}

void BestFirstSearch::LeaveOut(const Box& box, const Point& least) {
  if (box.Lists()) {
    const int64_t candidates = box.Pairs() * (box.last_option - box.first_option + 1);
    summary_.candidates += candidates;
    summary_.candidates_left_out += candidates;
  } else {
    summary_.pairs_left_out += box.Pairs();
  }
  const Order& order = collector_.order();
  if (!order.Allows(least)) return;
  summary_.least_left_out =
      std::min(summary_.least_left_out, order.Rank(least.seconds, least.cost));
}

void BestFirstSearch::Refuse(Limit obstacle) { ++summary_.refused[static_cast<size_t>(obstacle)]; }

void BestFirstSearch::Try(const Choice& choice) {
  ++summary_.candidates;
  if (const auto obstacle = model_.Obstacle(choice)) return Refuse(*obstacle);
  ++summary_.evaluated;
  const Forecast forecast = model_.Predict(choice);
  if (forecast.obstacle) return Refuse(*forecast.obstacle);
  const Point point{collector_.order().SecondsOf(forecast.prediction), forecast.prediction.cost,
                    choice.functions, choice.memory_mib, choice.option};
  if (!collector_.CanImprove(point)) return;
  if (!model_.FitsOnNodes(choice)) return Refuse(Limit::kNodes);
  collector_.Offer(point);
}

}  // namespace lambdadnn
