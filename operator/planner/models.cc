// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/models.h"

#include "common/base/check.h"
#include "common/base/named_rows.h"
#include "operator/planner/extended_model.h"
#include "operator/planner/fasdl_model.h"
#include "operator/planner/feng_model.h"
#include "operator/planner/lambda_dnn_model.h"

namespace lambdadnn {
namespace {

template <typename Model>
std::unique_ptr<PerformanceModel> Make(const PlannerInput& input, const SearchSpace& space) {
  return std::make_unique<Model>(input, space.memory_mib);
}

constexpr ModelKind kModelKinds[] = {
    {PredictionModel::kExtended, "extended", "", true, ExtendedModel::Validate,
     Make<ExtendedModel>},
    {PredictionModel::kLambdaDnn, "lambdadnn", "λDNN's model", false, LambdaDnnModel::Validate,
     Make<LambdaDnnModel>},
    {PredictionModel::kFeng, "feng", "Feng's model", false, FengModel::Validate, Make<FengModel>},
    {PredictionModel::kFasDl, "fasdl", "FasDL's model", false, FasDlModel::Validate,
     Make<FasDlModel>},
};

}  // namespace

std::span<const ModelKind> ModelKinds() { return kModelKinds; }

const ModelKind& KindOf(PredictionModel model) {
  for (const ModelKind& kind : kModelKinds) {
    if (kind.model == model) return kind;
  }
  LDNN_CHECK(false, "every model has its row in models.cc");
}

const ModelKind* FindModel(std::string_view name) { return FindRow(ModelKinds(), name); }

std::string ModelNames() { return NamesOf(ModelKinds()); }

}  // namespace lambdadnn
