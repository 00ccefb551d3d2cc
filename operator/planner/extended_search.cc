// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/extended_search.h"

#include <algorithm>
#include <limits>

namespace lambdadnn {
namespace {

// Bounds on time and cost that hold for a little rounding noise in the models' sums.
constexpr double kSlack = 1 - 1e-12;

struct LeastOfOptions {
  double exchange_seconds = std::numeric_limits<double>::infinity();
  double servers_gib = std::numeric_limits<double>::infinity();
};

// A worker's bandwidth is a line over memory, so the exchange is fastest at one of the ends.
LeastOfOptions LeastOf(const ExtendedModel& model, const WorkerTerms& workers,
                       const std::vector<int>& memory_mib,
                       const std::vector<AggregationOption>& options) {
  LeastOfOptions least;
  for (const AggregationOption& option : options) {
    for (const int memory : {memory_mib.front(), memory_mib.back()}) {
      least.exchange_seconds =
          std::min(least.exchange_seconds, model.ExchangeSeconds(workers, memory, option));
    }
    least.servers_gib = std::min(least.servers_gib, option.servers_gib);
  }
  return least;
}

}  // namespace

Obstacle SearchExtended(const ExtendedModel& model, const SearchSpace& space, Collector* collector,
                        int64_t* evaluated) {
  Obstacle closest = Obstacle::kMemory;
  bool runs = false;
  for (int n = space.min_functions; n <= space.max_functions; ++n) {
    const WorkerTerms workers = model.Workers(n);
    const std::vector<AggregationOption> options = model.Options(n);
    const LeastOfOptions least = LeastOf(model, workers, space.memory_mib, options);
    for (const int memory_mib : space.memory_mib) {
      double seconds = 0;
      double cost = 0;
      model.LowerBound(workers, memory_mib, least.exchange_seconds, least.servers_gib, &seconds,
                       &cost);
      if (seconds > 0 && !collector->CanImprove(n, seconds * kSlack, cost * kSlack)) continue;
      for (size_t i = 0; i < options.size(); ++i) {
        const Obstacle obstacle = model.Check(workers, memory_mib, options[i]);
        if (obstacle != Obstacle::kNone) {
          closest = std::max(closest, obstacle);
          continue;
        }
        ++*evaluated;
        const std::optional<Prediction> prediction = model.Predict(workers, memory_mib, options[i]);
        if (!prediction) {
          closest = Obstacle::kTimeout;
          continue;
        }
        runs = true;
        collector->Offer(
            {prediction->seconds, prediction->cost, n, memory_mib, static_cast<int>(i)});
      }
    }
  }
  return runs ? Obstacle::kNone : closest;
}

}  // namespace lambdadnn
