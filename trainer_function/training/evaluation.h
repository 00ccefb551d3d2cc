// SPDX-License-Identifier: Apache-2.0
// Evaluation on test samples in pieces of bounded memory.
#pragma once

#include <functional>

#include "common/base/status.h"
#include "common/plan/geometry.h"
#include "common/protocol/training_config.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

// Sums over the loaded test samples in `samples`; `pace` is called after each piece.
Result<EvaluationResult> EvaluateTest(TrainableModel& model, Dataset& dataset, Range samples,
                                      const std::function<void()>& pace);

// kInvalidArgument when the training decides by a metric that this data set does not give: it has
// no test samples, or too few classes.
Status CheckMetrics(const TrainingConfig& training, const DatasetInfo& dataset);

}  // namespace lambdadnn
