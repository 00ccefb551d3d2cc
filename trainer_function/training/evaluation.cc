// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/evaluation.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// Part of the sums' definition: floating-point sums depend on the pieces.
constexpr int64_t kEvaluationBatch = 256;

}  // namespace

Result<EvaluationResult> EvaluateTest(TrainableModel& model, const Dataset& dataset, Range samples,
                                      const std::function<void()>& pace) {
  EvaluationResult total;
  for (int64_t begin = samples.begin; begin < samples.end; begin += kEvaluationBatch) {
    const Range piece = {begin, std::min(begin + kEvaluationBatch, samples.end)};
    LDNN_ASSIGN_OR_RETURN(const Batch batch, dataset.ReadTest(piece));
    LDNN_ASSIGN_OR_RETURN(const EvaluationResult result, model.Evaluate(batch));
    total += result;
    pace();
  }
  return total;
}

}  // namespace lambdadnn
