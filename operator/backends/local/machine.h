// SPDX-License-Identifier: Apache-2.0
// What this process may use of the machine: the CPUs that it may run on and the limits of its
// control groups, not what is built in. A container of one CPU and 2 GiB is a machine of that size.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lambdadnn {

// The environment variable that tells CUDA which GPUs a process may use.
inline constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";

struct Machine {
  double cpus = 1;  // 0.5 = half of one's time
  double memory_mib = 0;
  std::vector<std::string> gpus = {};  // each as CUDA_VISIBLE_DEVICES names it
};

// The least of: the CPUs of this thread's affinity; the CPU quota and the memory limit of this
// process' control group, version 1 or 2, and of every group above it that can be seen; the
// machine's memory. `proc` is "/proc" but for tests. What cannot be read is no limit. GPUs are
// those of GpusOf().
Machine MeasureMachine(const std::string& proc = "/proc");

// Those of NVIDIA whose devices are in folder `devices` ("/dev"): "0", "1" and so on. Where
// `visible` is set, a value of CUDA_VISIBLE_DEVICES, those that it names.
std::vector<std::string> GpusOf(const std::string& devices,
                                const std::optional<std::string>& visible);

// The model of its CPUs, as /proc/cpuinfo names it; "" where it does not.
std::string CpuModel(const std::string& proc = "/proc");

}  // namespace lambdadnn
