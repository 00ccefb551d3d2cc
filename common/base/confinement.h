// SPDX-License-Identifier: Apache-2.0
// What a process takes from itself before it runs somebody else's code: the network, other programs
// and processes, files to write, and more memory and CPU time than it is given. Linux alone.
#pragma once

#include <cstdint>

#include "common/base/status.h"

namespace lambdadnn {

struct ConfinementLimits {
  // Of address space, beside what the process has mapped already. What would exceed it fails
  // (ENOMEM), and with it std::bad_alloc.
  int64_t more_memory_bytes = 0;
  // Beside what the process has used already, of all its threads. SIGXCPU ends it then.
  int64_t more_cpu_seconds = 0;
};

// For good, for all threads of this process. From here on these fail with EPERM: sockets, and
// whatever is done with one but reading and writing; starting programs and processes (threads may
// start); signals to other processes, and their memory; opening files to write, and changing names,
// rights or sizes of files. What is open already stays open. kFailedPrecondition, with what to do,
// where the kernel cannot do one of these: part of the limits may hold then.
Status ConfineThisProcess(const ConfinementLimits& limits);

// The same of system calls alone, for this thread and those that it starts; others go on as before.
// Memory is shared, so that it holds for code that only computes with what it is given, as
// TorchScript does, and not for code that writes into other threads.
Status ConfineThisThread();

}  // namespace lambdadnn
