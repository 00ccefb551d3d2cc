// SPDX-License-Identifier: Apache-2.0
// What simulated functions train: a model whose gradients are small integers that depend on every
// sample and on the parameters, so that sums are exact in any order and a lost, doubled or stale
// contribution changes the result; and a data set of numbered samples. Buffers after a step are
// small integers that depend on its samples and on the buffers before it: their weighed sums are
// exact as well where batches have a power of two of samples.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/base/runtime.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn::simulation {

// The model of a plan with such a vector (common/plan/geometry.h). `compute` is called once a step
// with the number of samples: it takes the step's time.
std::unique_ptr<TrainableModel> MakeSimModel(int64_t vector_elements, int64_t buffers,
                                             std::function<void(int64_t samples)> compute);

std::unique_ptr<Dataset> MakeSimDataset(int64_t samples, int64_t test_samples);

}  // namespace lambdadnn::simulation
