// SPDX-License-Identifier: Apache-2.0
// One job in words: what it is to do, how far it is, what it has used, and its conditions. Pure.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "operator/api/job.h"

namespace lambdadnn {

std::string FormatJobDetail(const Job& job, WallTime now);

}  // namespace lambdadnn
