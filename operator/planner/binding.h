// SPDX-License-Identifier: Apache-2.0
// What limits a plan: the limits next to it whose relaxation would give a better one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operator/planner/candidate.h"
#include "operator/planner/extended_model.h"
#include "operator/planner/space.h"

namespace lambdadnn {

// One of the two models behind the same questions.
class SearchModel {
 public:
  using Better = std::function<bool(const Point&, const Point&)>;
  virtual ~SearchModel() = default;
  // The candidate in full.
  virtual PlanCandidate Describe(const Point& point) const = 0;
  // The best aggregation of (n, m), whether the platform allows it or not; empty when R(m) <= 0.
  virtual std::optional<Point> Probe(int functions, int memory_mib, const Better& better) const = 0;
  // Why (n, m) with this option cannot run.
  virtual Obstacle ObstacleOf(const Point& point) const = 0;
  // The parameter server's network limits n functions.
  virtual bool ServerSaturated(int functions) const = 0;
  // What a worker needs at least, in MiB.
  virtual double NeededMib(int functions) const = 0;
};

// Any of memory, quota, functions, batch, parameterServerBandwidth. `better` decides what would be
// gained: Order::Better for a plan, Faster or Cheaper for a certificate.
std::vector<std::string> BindingLimits(const PlannerInput& input, const SearchSpace& space,
                                       const SearchModel& model, const Point& point,
                                       const SearchModel::Better& better);

}  // namespace lambdadnn
