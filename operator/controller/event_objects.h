// SPDX-License-Identifier: Apache-2.0
// events.k8s.io/v1 objects about jobs. Pure. The name follows from the content, so an event that is
// created twice is one event.
#pragma once

#include "common/base/clock.h"
#include "operator/api/job.h"

namespace lambdadnn {

Json MakeEvent(const Job& job, const Condition& condition, WallTime wall);

}  // namespace lambdadnn
