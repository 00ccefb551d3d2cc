// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/searches.h"

#include "common/base/check.h"
#include "common/base/named_rows.h"
#include "operator/planner/algorithm1.h"
#include "operator/planner/baselines.h"
#include "operator/planner/fasdl_search.h"
#include "operator/planner/models.h"

namespace lambdadnn {
namespace {

Status RequireModel(const PlannerInput& input, PredictionModel model) {
  if (input.options.model == model) return OkStatus();
  return InvalidArgumentError("search " + std::string(KindOf(input.options.search).name) +
                              " needs model " + std::string(KindOf(model).name));
}

// These stop at the first plan that is in time.
Status NeedsDeadline(const PlannerInput& input) {
  if (input.objective.deadline_seconds) return OkStatus();
  return InvalidArgumentError("search " + std::string(KindOf(input.options.search).name) +
                              " needs objective.deadlineSeconds");
}

Status NeedsLambdaDnn(const PlannerInput& input) {
  LDNN_RETURN_IF_ERROR(RequireModel(input, PredictionModel::kLambdaDnn));
  return NeedsDeadline(input);
}

// These choose K themselves.
Status NeedsFasDl(const PlannerInput& input) {
  LDNN_RETURN_IF_ERROR(RequireModel(input, PredictionModel::kFasDl));
  if (!input.aggregation.shards && !input.aggregation.shard_per_worker) return OkStatus();
  return InvalidArgumentError("search " + std::string(KindOf(input.options.search).name) +
                              " chooses the shards; leave out aggregation.shards");
}

Status ValidateFasDlSearch(const PlannerInput& input) {
  LDNN_RETURN_IF_ERROR(NeedsFasDl(input));
  LDNN_RETURN_IF_ERROR(NeedsDeadline(input));
  return RequireHeuristicBatch(input);
}

constexpr SearchKind kSearchKinds[] = {
    {SearchMethod::kExact, "exact", "", "the best of all candidates", nullptr, nullptr, nullptr},
    {SearchMethod::kAlgorithm1, "algorithm1", "Algorithm 1",
     "per size the first n in time that is not dearer", NeedsLambdaDnn, FindByAlgorithm1, nullptr},
    {SearchMethod::kAlgorithm1First, "algorithm1-first", "Algorithm 1 with the first n in time",
     "per size the first n in time", NeedsLambdaDnn, FindByAlgorithm1First, nullptr},
    {SearchMethod::kFasDl, "fasdl", "FasDL's heuristic",
     "K = n, a size in time; fewer K while that is faster", ValidateFasDlSearch, FindByFasDl,
     nullptr},
    {SearchMethod::kLambdaMlAllReduce, "lambdaml-allreduce", "LambdaML's AllReduce",
     "the best with K = 1", NeedsFasDl, nullptr, NarrowToAllReduce},
    {SearchMethod::kLambdaMlScatterReduce, "lambdaml-scatterreduce", "LambdaML's ScatterReduce",
     "the best with K = n", NeedsFasDl, nullptr, NarrowToScatterReduce},
    {SearchMethod::kCirrus, "cirrus", "as Cirrus is used", "largest size, n doubled until in time",
     NeedsDeadline, FindAsCirrus, nullptr},
    {SearchMethod::kOptimus, "optimus", "Optimus' marginal gains",
     "what gains most per GiB, until in time", NeedsDeadline, FindByMarginalGain, nullptr},
    {SearchMethod::kMlless, "mlless", "MLLess' scale-in",
     "largest size, fewer functions while no slower", NeedsDeadline, FindByScaleIn, nullptr},
    {SearchMethod::kKubeMl, "kubeml", "KubeML's policy",
     "largest size, n + 1 or n - 1 after each epoch", NeedsDeadline, FindByElasticity, nullptr},
    {SearchMethod::kLargestMemory, "largest-memory", "the largest memory",
     "the best with the largest size", nullptr, nullptr, NarrowToLargestMemory},
};

}  // namespace

std::optional<Point> SearchTask::FastestOf(int functions, int memory_mib) {
  std::optional<Point> fastest;
  const int options = model.OptionCount(functions);
  for (int option = 0; option < options; ++option) {
    const Choice choice{functions, memory_mib, option};
    ++summary.candidates;
    std::optional<Limit> obstacle = model.Obstacle(choice);
    Forecast forecast;
    if (!obstacle) {
      ++summary.evaluated;
      forecast = model.Predict(choice);
      obstacle = forecast.obstacle;
    }
    const Prediction& prediction = forecast.prediction;
    const Point point{order.SecondsOf(prediction), prediction.cost, functions, memory_mib, option};
    if (!obstacle && fastest && !Faster(point, *fastest)) continue;
    if (!obstacle && !model.FitsOnNodes(choice)) obstacle = Limit::kNodes;
    if (obstacle) {
      ++summary.refused[static_cast<size_t>(*obstacle)];
    } else {
      fastest = point;
    }
  }
  return fastest;
}

std::span<const SearchKind> SearchKinds() { return kSearchKinds; }

const SearchKind& KindOf(SearchMethod method) {
  for (const SearchKind& kind : kSearchKinds) {
    if (kind.method == method) return kind;
  }
  LDNN_CHECK(false, "every way to search has its row in searches.cc");
}

const SearchKind* FindSearch(std::string_view name) { return FindRow(SearchKinds(), name); }

std::string SearchNames() { return NamesOf(SearchKinds()); }

}  // namespace lambdadnn
