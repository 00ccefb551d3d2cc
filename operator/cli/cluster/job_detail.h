// SPDX-License-Identifier: Apache-2.0
// A description of one job: its task, progress, usage and conditions. Pure.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "operator/api/job.h"

namespace lambdadnn {

std::string FormatJobDetail(const Job& job, WallTime now);

}  // namespace lambdadnn
