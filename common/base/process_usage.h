// SPDX-License-Identifier: Apache-2.0
// What this process has used of the machine so far.
#pragma once

#include <cstdint>

namespace lambdadnn {

struct ProcessUsage {
  double cpu_seconds = 0;     // user and system, all threads
  int64_t max_rss_bytes = 0;  // largest resident set
};

ProcessUsage CurrentProcessUsage();

}  // namespace lambdadnn
