// SPDX-License-Identifier: Apache-2.0
// The exact search, over any model: branch and bound. Boxes of the search space are split lazily
// and visited in the order of their bounds, the best first; a box is pruned when its bound shows
// that no candidate in it can change the collector's result. So the result is that of trying all
// candidates.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "operator/planner/candidate.h"
#include "operator/planner/performance_model.h"

namespace lambdadnn {

class BestFirstSearch {
 public:
  // All of these outlive the search; counts are added to `summary`.
  BestFirstSearch(PerformanceModel* model, Collector* collector, SearchSummary* summary)
      : model_(*model),
        collector_(*collector),
        summary_(*summary),
        ceiling_{collector->largest_seconds(), collector->largest_cost()} {}

  void Run(const SearchSpace& space);

 private:
  struct Part {
    Box box;
    Point least;      // no candidate of the box is better in anything
    double rank = 0;  // of its bound
  };

  void Explore(const Box& box, const std::vector<int>& sizes, size_t depth);
  void Consider(const Box& box, const std::vector<int>& sizes, std::vector<Part>* parts);
  void LeaveOut(const Box& box, const Point& least);
  void Try(const Choice& choice);
  void Refuse(Limit obstacle);

  PerformanceModel& model_;
  Collector& collector_;
  SearchSummary& summary_;
  Ceiling ceiling_;
  // The parts of one box that are still to be explored, and a heap of them, the best on top.
  struct Level {
    std::vector<Part> parts;
    std::vector<std::pair<double, size_t>> order;  // rank, index
  };
  std::vector<Box> boxes_;
  std::deque<Level> levels_;  // by depth; kept for their memory
};

}  // namespace lambdadnn
