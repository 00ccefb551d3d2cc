// SPDX-License-Identifier: Apache-2.0
// What it takes to read samples again that a worker does not keep: measured as training reads them,
// by the requests of a batch's samples, decoded.
#pragma once

#include "trainer_function/data/dataset.h"
#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// `batch` samples are a global batch of the training: how far its samples lie apart. Writes
// streamRequestsPerSample, streamBytesPerSample, streamCpuSecondsPerSample and
// streamSecondsPerSample (protocol/slice.h). Nothing where samples cannot be read by themselves.
Status MeasureStreaming(const RoleContext& context, const TrainingEnvironment& environment,
                        Dataset& dataset, int64_t batch, SliceRecord* record);

}  // namespace lambdadnn
