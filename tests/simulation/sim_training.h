// SPDX-License-Identifier: Apache-2.0
// What simulated functions train: a model whose gradients are small integers that depend on every
// sample and on the parameters, so that sums are exact in any order and a lost, doubled or stale
// contribution changes the result; and a data set of numbered samples.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/base/runtime.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn::simulation {

// `compute` is called once a step with the number of samples: it takes the step's time.
std::unique_ptr<TrainableModel> MakeSimModel(int64_t parameters,
                                             std::function<void(int64_t samples)> compute);

std::unique_ptr<Dataset> MakeSimDataset(int64_t samples, int64_t test_samples);

}  // namespace lambdadnn::simulation
