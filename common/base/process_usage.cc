// SPDX-License-Identifier: Apache-2.0
#include "common/base/process_usage.h"

#include <malloc.h>
#include <sys/resource.h>

#include <ctime>

namespace lambdadnn {

ProcessUsage CurrentProcessUsage() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return {};
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  constexpr int64_t kKibibyte = 1024;  // Linux counts the resident set in these
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss * kKibibyte};
}

double ThreadCpuSeconds() {
  timespec time{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void KeepFreedMemory() {
  constexpr int kKeptBytes = 128 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kKeptBytes);
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
}

void ShareOneHeap() { ::mallopt(M_ARENA_MAX, 1); }

}  // namespace lambdadnn
