// SPDX-License-Identifier: Apache-2.0
// Termination signals of a server process.
#pragma once

#include <signal.h>

namespace lambdadnn {

// SIGTERM and SIGINT, blocked from now on in this thread and those that it starts, so that sigwait
// on the set receives them: the kernel has no default action for them in PID 1. SIGPIPE is ignored.
// Call it before any thread starts.
sigset_t BlockEndSignals();

}  // namespace lambdadnn
