// SPDX-License-Identifier: Apache-2.0
// CPU time and memory that this process has used so far.
#pragma once

#include <cstdint>

namespace lambdadnn {

struct ProcessUsage {
  double cpu_seconds = 0;     // user and system, all threads
  int64_t max_rss_bytes = 0;  // largest resident set
};

ProcessUsage CurrentProcessUsage();

}  // namespace lambdadnn
