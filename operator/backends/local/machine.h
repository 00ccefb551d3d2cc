// SPDX-License-Identifier: Apache-2.0
// What this process may use of the machine: the CPUs that it may run on and the limits of its
// control groups, not what is built in. A container of one CPU and 2 GiB is a machine of that size.
#pragma once

#include <string>

namespace lambdadnn {

struct Machine {
  double cpus = 1;  // 0.5 = half of one's time
  double memory_mib = 0;
};

// The least of: the CPUs of this thread's affinity; the CPU quota and the memory limit of this
// process' control group, version 1 or 2, and of every group above it that can be seen; the
// machine's memory. `proc` is "/proc" but for tests. What cannot be read is no limit.
Machine MeasureMachine(const std::string& proc = "/proc");

// The model of its CPUs, as /proc/cpuinfo names it; "" where it does not.
std::string CpuModel(const std::string& proc = "/proc");

}  // namespace lambdadnn
