// SPDX-License-Identifier: Apache-2.0
// Keeps a function to its CPU quota where no cgroup may be made: after each piece of work it sleeps
// until the CPU time used is at most quota x wall time. Unlike a cgroup it cannot stop a thread in
// the middle of a piece, so pieces should take well below a second.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "common/base/clock.h"

namespace lambdadnn {

// Thread-safe.
class CpuPacer {
 public:
  // The process' CPU clock; tests give their own.
  using CpuClock = std::function<Duration()>;

  CpuPacer(Clock& clock, int milli_cpu, CpuClock cpu_clock = ProcessCpuTime);

  // Reads the quota again from this file before each sleep; empty = never. The file holds milli-CPU
  // as decimal digits and is replaced atomically by the function host.
  void FollowFile(std::string path) { quota_file_ = std::move(path); }

  // Sleeps as long as the quota asks for. milli_cpu 0 = no quota.
  void Pace();
  void SetMilliCpu(int milli_cpu);
  int milli_cpu() const;
  // By all threads together so far.
  Duration slept() const { return slept_.load(); }

 private:
  void ReadQuotaFile();

  Clock& clock_;
  const CpuClock cpu_clock_;
  std::string quota_file_;
  mutable std::mutex mutex_;
  int milli_cpu_;
  Instant last_wall_;
  Duration last_cpu_;
  std::atomic<Duration> slept_{Duration::zero()};
  Duration debt_{};  // CPU time used beyond the quota; negative = credit
};

}  // namespace lambdadnn
