// SPDX-License-Identifier: Apache-2.0
// A step on a batch of which only a part fits into memory at a time: gradients of the parts are
// added (gradient accumulation).
#pragma once

#include <cstdint>
#include <span>

#include "common/base/status.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

// As model.ForwardBackward(batch, step_seed, gradient), but on `piece` samples at a time in their
// order; 0 = all at once. The sums are those of the whole batch up to rounding, which depends on
// `piece`; a model with batch norm sees each piece by itself. The first piece draws from
// `step_seed`, each other one from a seed of its own that follows from it.
Result<StepResult> StepInPieces(TrainableModel& model, const Batch& batch, int piece,
                                uint64_t step_seed, std::span<float> gradient);

}  // namespace lambdadnn
