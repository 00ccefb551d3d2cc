// SPDX-License-Identifier: Apache-2.0
// CPU time and memory of this process.
#pragma once

#include <cstdint>

namespace lambdadnn {

struct ProcessUsage {
  double cpu_seconds = 0;     // user and system, all threads
  int64_t max_rss_bytes = 0;  // largest resident set
};

ProcessUsage CurrentProcessUsage();
// Of the thread that asks; 0 where there is no such clock.
double ThreadCpuSeconds();

// From now on memory that is freed stays with the process, up to 128 MiB at once: for a loop that
// needs as large vectors again and again. Returned to the kernel in between it comes back page by
// page, zeroed, which takes a tenth of a training step's CPU time.
void KeepFreedMemory();

// All threads allocate from one heap: with one for each, what a thread has freed is no use to the
// others, and vectors that one allocates and another frees count twice. Before threads start.
void ShareOneHeap();

}  // namespace lambdadnn
