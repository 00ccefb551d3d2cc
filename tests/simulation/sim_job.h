// SPDX-License-Identifier: Apache-2.0
// A scenario's job as a user would apply it, and the platform that its controller plans for.
#pragma once

#include "operator/api/job.h"
#include "operator/controller/options.h"
#include "tests/simulation/scenario.h"

namespace lambdadnn::simulation {

// What the headers of its data set and the description of its model tell.
WorkloadFacts MakeFacts(const Scenario& scenario);
// What a function that measures finds.
SliceRecord MakeProfileRecord(const Scenario& scenario, const SliceRequest& request);
Job MakeJob(const Scenario& scenario);
ControllerOptions MakeControllerOptions(const Scenario& scenario, int64_t leader_epoch);

}  // namespace lambdadnn::simulation
