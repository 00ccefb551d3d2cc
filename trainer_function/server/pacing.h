// SPDX-License-Identifier: Apache-2.0
// Decorators of model and object store that call the pacer after each batch and before each stored
// object, so that the training loops need not. Used where no control group limits the CPU, and by
// profiles of sizes smaller than the function's.
#pragma once

#include <functional>
#include <memory>

#include "common/objectstore/object_store.h"
#include "trainer_function/model/trainable_model.h"
#include "trainer_function/server/cpu_pacer.h"
#include "trainer_function/server/slice_service.h"

namespace lambdadnn {

// `pace` is called on the thread that computes; it outlives what is returned.
std::unique_ptr<TrainableModel> PaceModel(std::unique_ptr<TrainableModel> model,
                                          std::function<void()> pace);
std::unique_ptr<ObjectStore> PaceStore(std::unique_ptr<ObjectStore> store,
                                       std::function<void()> pace);
// Adds the pacer to the environment's own pace, to its models and to its stores, and what it sleeps
// to throttled_seconds. It outlives the environment.
void AddPacing(CpuPacer& pacer, SliceEnvironment* environment);

}  // namespace lambdadnn
