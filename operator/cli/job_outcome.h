// SPDX-License-Identifier: Apache-2.0
// Exit code and last line of a command that waits for a job: the same for `run`, `submit --wait`
// and `status -w`.
#pragma once

#include <string>

#include "operator/api/job.h"

namespace lambdadnn {

// The exit code (command.h) of a job that is complete or failed.
int ExitCodeOfFinished(const Job& job);
// "job digits failed: Infeasible: ..."; empty unless it failed.
std::string DescribeFailure(const Job& job);

}  // namespace lambdadnn
