// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/fasdl_search.h"

#include <algorithm>
#include <cmath>

namespace lambdadnn {
namespace {

constexpr double kShareOfHighestRate = 0.8;

// One search, for the batch of the aggregators that it takes.
class FasDlHeuristic {
 public:
  explicit FasDlHeuristic(SearchTask* task)
      : task_(*task), model_(task->input, task->space.memory_mib), batch_(HeuristicBatch(model_)) {}

  std::optional<Point> Find() {
    std::optional<Point> best;
    const int most = std::min(task_.space.max_functions, model_.largest_global_batch() / batch_);
    for (int workers = task_.space.min_functions; workers <= most; ++workers) {
      ConsiderSizes(workers, &best);
    }
    if (best) LowerAggregators(&*best);
    return best;
  }

 private:
  std::optional<Point> At(int workers, int memory_mib, int aggregators) {
    const FasDlMemory memory = model_.AtMemory(memory_mib);
    ++task_.summary.candidates;
    if (!memory.runs) {
      ++task_.summary.refused[static_cast<size_t>(Limit::kMemory)];
      return std::nullopt;
    }
    ++task_.summary.evaluated;
    const Prediction prediction =
        model_.Predict(batch_, model_.Reduce(workers, aggregators, memory), memory);
    return Point{task_.order.SecondsOf(prediction), prediction.cost, workers, memory_mib,
                 model_.OptionOf(workers, aggregators, batch_)};
  }

  // K = W; the largest size tells whether any is in time.
  void ConsiderSizes(int workers, std::optional<Point>* best) {
    const std::vector<int>& sizes = task_.space.memory_mib;
    const std::optional<Point> largest = At(workers, sizes.back(), workers);
    if (!largest || !task_.order.Allows(*largest)) return;
    for (const int memory_mib : sizes) {
      const std::optional<Point> point = At(workers, memory_mib, workers);
      if (!point || !task_.order.Allows(*point)) continue;
      if (*best && point->cost >= (*best)->cost) continue;
      *best = point;
      return;
    }
  }

  void LowerAggregators(Point* best) {
    for (int aggregators = best->functions - 1; aggregators >= 1; --aggregators) {
      const std::optional<Point> fewer = At(best->functions, best->memory_mib, aggregators);
      if (!fewer || fewer->seconds >= best->seconds) return;
      *best = *fewer;
    }
  }

  SearchTask& task_;
  FasDlModel model_;
  const int batch_;
};

}  // namespace

int HeuristicBatch(const FasDlModel& model) {
  return static_cast<int>(
      std::clamp(std::round(model.step_samples() / (1 / kShareOfHighestRate - 1)), 0.0, 1e9));
}

Status RequireHeuristicBatch(const PlannerInput& input) {
  if (HeuristicBatch(FasDlModel(input)) >= 1) return OkStatus();
  return InvalidArgumentError(
      "search fasdl takes a batch of four times the samples that a step's fixed part is worth; "
      "give profile.iterationOverheadSeconds or iterationCpuSeconds");
}

std::optional<Point> FindByFasDl(SearchTask* task) { return FasDlHeuristic(task).Find(); }

}  // namespace lambdadnn
