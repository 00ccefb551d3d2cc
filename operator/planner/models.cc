// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/models.h"

#include "common/base/check.h"
#include "operator/planner/extended_model.h"
#include "operator/planner/lambda_dnn_model.h"

namespace lambdadnn {
namespace {

template <typename Model>
std::unique_ptr<PerformanceModel> Make(const PlannerInput& input, const SearchSpace& space) {
  return std::make_unique<Model>(input, space.memory_mib);
}

constexpr ModelKind kModelKinds[] = {
    {PredictionModel::kExtended, "extended", "", ExtendedModel::Validate, Make<ExtendedModel>},
    {PredictionModel::kLambdaDnn, "lambdadnn", "λDNN's model", LambdaDnnModel::Validate,
     Make<LambdaDnnModel>},
};

constexpr SearchKind kSearchKinds[] = {
    {SearchMethod::kExact, "exact", ""},
    {SearchMethod::kAlgorithm1, "algorithm1", "Algorithm 1"},
};

}  // namespace

std::span<const ModelKind> ModelKinds() { return kModelKinds; }
std::span<const SearchKind> SearchKinds() { return kSearchKinds; }

const ModelKind& KindOf(PredictionModel model) {
  for (const ModelKind& kind : kModelKinds) {
    if (kind.model == model) return kind;
  }
  LDNN_CHECK(false, "every model has its row in models.cc");
}

const SearchKind& KindOf(SearchMethod method) {
  for (const SearchKind& kind : kSearchKinds) {
    if (kind.method == method) return kind;
  }
  LDNN_CHECK(false, "every way to search has its row in models.cc");
}

const ModelKind* FindModel(std::string_view name) {
  for (const ModelKind& kind : kModelKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

const SearchKind* FindSearch(std::string_view name) {
  for (const SearchKind& kind : kSearchKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

}  // namespace lambdadnn
