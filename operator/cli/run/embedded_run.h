// SPDX-License-Identifier: Apache-2.0
// `lambdadnn run`: one job from file to report on this machine. Returns the exit code.
#pragma once

#include "operator/cli/command.h"
#include "operator/cli/run/run_options.h"

namespace lambdadnn {

int RunEmbedded(const RunOptions& options, CommandContext& context);

}  // namespace lambdadnn
