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

LeastOfOptions LeastOf(const ExtendedModel& model, const WorkerTerms& workers,
                       const std::vector<int>& memory_mib,
                       const std::vector<AggregationOption>& options) {
  LeastOfOptions least;
  for (const AggregationOption& option : options) {
    least.exchange_seconds = std::min(
        least.exchange_seconds,
        model.LeastExchangeSeconds(workers, memory_mib.front(), memory_mib.back(), option));
    least.servers_gib = std::min(least.servers_gib, option.servers_gib);
  }
  return least;
}

class ExtendedSearch {
 public:
  ExtendedSearch(const ExtendedModel& model, const SearchSpace& space, Collector* collector,
                 int64_t* evaluated)
      : model_(model), space_(space), collector_(*collector), evaluated_(*evaluated) {}

  Obstacle Run() {
    for (int n = space_.min_functions; n <= space_.max_functions; ++n) {
      const WorkerTerms workers = model_.Workers(n);
      // A first look without the exchange: most n end here, before their trees are built.
      if (!AnyMemoryCanImprove(workers, {.exchange_seconds = 0, .servers_gib = 0})) continue;
      const std::vector<AggregationOption> options = model_.Options(n);
      const LeastOfOptions least = LeastOf(model_, workers, space_.memory_mib, options);
      for (const int memory_mib : space_.memory_mib) {
        if (CanImprove(workers, memory_mib, least)) TryOptions(workers, memory_mib, options);
      }
    }
    return runs_ ? Obstacle::kNone : closest_;
  }

 private:
  bool CanImprove(const WorkerTerms& workers, int memory_mib, const LeastOfOptions& least) const {
    if (!model_.Possible(workers, memory_mib)) return !runs_;  // for the obstacle alone
    double seconds = 0;
    double cost = 0;
    model_.LowerBound(workers, memory_mib, least.exchange_seconds, least.servers_gib, &seconds,
                      &cost);
    return collector_.CanImprove(seconds * kSlack, cost * kSlack);
  }

  bool AnyMemoryCanImprove(const WorkerTerms& workers, const LeastOfOptions& least) const {
    return std::any_of(space_.memory_mib.begin(), space_.memory_mib.end(),
                       [&](int memory_mib) { return CanImprove(workers, memory_mib, least); });
  }

  void TryOptions(const WorkerTerms& workers, int memory_mib,
                  const std::vector<AggregationOption>& options) {
    for (size_t i = 0; i < options.size(); ++i) {
      const Obstacle obstacle = model_.Check(workers, memory_mib, options[i]);
      if (obstacle != Obstacle::kNone) {
        closest_ = std::max(closest_, obstacle);
        continue;
      }
      ++evaluated_;
      const std::optional<Prediction> prediction = model_.Predict(workers, memory_mib, options[i]);
      if (!prediction) {
        closest_ = Obstacle::kTimeout;
        continue;
      }
      // Looking for room on machines takes longer than all the rest.
      if (!collector_.CanImprove(prediction->seconds * kSlack, prediction->cost * kSlack)) continue;
      if (!model_.FitsMachines(workers, memory_mib, options[i])) {
        closest_ = std::max(closest_, Obstacle::kMachines);
        continue;
      }
      runs_ = true;
      collector_.Offer({prediction->seconds, prediction->cost, workers.functions, memory_mib,
                        static_cast<int>(i)});
    }
  }

  const ExtendedModel& model_;
  const SearchSpace& space_;
  Collector& collector_;
  int64_t& evaluated_;
  Obstacle closest_ = Obstacle::kMemory;
  bool runs_ = false;
};

}  // namespace

Obstacle SearchExtended(const ExtendedModel& model, const SearchSpace& space, Collector* collector,
                        int64_t* evaluated) {
  return ExtendedSearch(model, space, collector, evaluated).Run();
}

}  // namespace lambdadnn
