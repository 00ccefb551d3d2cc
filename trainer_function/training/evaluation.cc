// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/evaluation.h"

#include <algorithm>

#include "common/plan/sample_memory.h"

namespace lambdadnn {
Result<EvaluationResult> EvaluateTest(TrainableModel& model, Dataset& dataset, Range samples,
                                      const std::function<void()>& pace) {
  EvaluationResult total;
  for (int64_t begin = samples.begin; begin < samples.end; begin += kEvaluationBatch) {
    const Range piece = {begin, std::min(begin + kEvaluationBatch, samples.end)};
    LDNN_RETURN_IF_ERROR(dataset.FetchTest(piece));
    LDNN_ASSIGN_OR_RETURN(const Batch batch, dataset.ReadTest(piece));
    LDNN_ASSIGN_OR_RETURN(const EvaluationResult result, model.Evaluate(batch));
    total += result;
    pace();
  }
  return total;
}

Status CheckMetrics(const TrainingConfig& training, const DatasetInfo& dataset) {
  const auto check = [&](TestMetric metric, const std::string& field) -> Status {
    if (dataset.test_samples == 0 || !training.evaluate_each_epoch) {
      return InvalidArgumentError(field +
                                  " needs a test set; set spec.dataset.testUri, or remove it");
    }
    return CheckMetric(metric, training.loss, dataset.classes, field);
  };
  if (training.early_stopping) {
    LDNN_RETURN_IF_ERROR(check(training.early_stopping->metric, "spec.training.earlyStopping"));
  }
  return training.keep_best ? check(*training.keep_best, "spec.training.keepBest") : OkStatus();
}

}  // namespace lambdadnn
