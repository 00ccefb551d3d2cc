// SPDX-License-Identifier: Apache-2.0
// How a server process learns that it is to end.
#pragma once

#include <signal.h>

namespace lambdadnn {

// SIGTERM and SIGINT, blocked from now on in this thread and those that it starts, so that whoever
// waits for the set (sigwait) takes them: the kernel has no default action for them in PID 1.
// SIGPIPE is ignored. Call it before any thread starts.
sigset_t BlockEndSignals();

}  // namespace lambdadnn
