// SPDX-License-Identifier: Apache-2.0
// Measures what an object costs that goes from one function to another over a connection
// (transport Direct), and what a doorbell does (transport ObjectStore): two ends of it in this
// process, connected as functions of a job are. Part of role `profile`.
#pragma once

#include <span>

#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// directSeconds, directDeviationSeconds, directBytesPerSecond: of objects that another task waits
// for; directPush-, directSend- and directPullCpuSeconds(PerByte): of keeping one and letting it go
// again, of sending it to one reader, and of receiving it. doorbellSend- and
// doorbellReceiveCpuSeconds: of telling one reader of an object in the store. Nothing where
// functions have no connections. `gradient` is as long as the model.
Status MeasureDirect(const RoleContext& context, const TrainingEnvironment& environment,
                     std::span<const float> gradient, SliceRecord* record);

}  // namespace lambdadnn
