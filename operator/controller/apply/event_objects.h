// SPDX-License-Identifier: Apache-2.0
// What events say about jobs. Pure.
#pragma once

#include "operator/api/job.h"
#include "operator/kube/event_recorder.h"

namespace lambdadnn {

EventDraft MakeEvent(const Job& job, const Condition& condition);

}  // namespace lambdadnn
