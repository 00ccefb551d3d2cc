// SPDX-License-Identifier: Apache-2.0
// report.json of a run (docs/formats.md): predicted against actual, and what happened. Pure.
#pragma once

#include <string>

#include "common/json/json_reader.h"
#include "operator/controller/observe/job_history.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

Json BuildReport(const JobSnapshot& snapshot, const JobHistory& history,
                 const std::string& isolation);

}  // namespace lambdadnn
