// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <vector>

#include "common/base/files.h"
#include "common/base/text.h"
#include "operator/backends/local/cgroups.h"

namespace lambdadnn {
namespace {

constexpr double kBytesPerMib = 1024.0 * 1024.0;
constexpr int kMostCpus = 1 << 16;

int OnlineCpus() { return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))); }

// The kernel refuses a set that is smaller than its own, so it is tried with larger ones.
int AllowedCpus() {
  for (int most = CPU_SETSIZE; most <= kMostCpus; most *= 2) {
    std::vector<cpu_set_t> set(static_cast<size_t>(most / CPU_SETSIZE));
    const size_t bytes = set.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, set.data()) == 0) {
      return std::max(1, CPU_COUNT_S(bytes, set.data()));
    }
    if (errno != EINVAL) break;
  }
  return OnlineCpus();
}

// Of a file with one number; "max" and a missing file are none.
std::optional<long long> NumberIn(const std::string& file) {
  const auto text = ReadFile(file);
  return text.ok() ? ParseInteger(Trim(*text)) : std::nullopt;
}

void LimitCpus(std::optional<long long> quota, std::optional<long long> period, double* cpus) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return;
  *cpus = std::min(*cpus, static_cast<double>(*quota) / static_cast<double>(*period));
}

void LimitMemory(const std::string& file, double* memory_mib) {
  const std::optional<long long> bytes = NumberIn(file);
  if (!bytes || *bytes <= 0) return;
  *memory_mib = std::min(*memory_mib, static_cast<double>(*bytes) / kBytesPerMib);
}

void LimitByVersion1(const CgroupPlaces& places, Machine* machine) {
  if (!places.cpu_mount.empty()) {
    for (const std::string& group : CgroupFolders(places.cpu_mount, places.cpu_path)) {
      LimitCpus(NumberIn(group + "/cpu.cfs_quota_us"), NumberIn(group + "/cpu.cfs_period_us"),
                &machine->cpus);
    }
  }
  if (places.memory_mount.empty()) return;
  for (const std::string& group : CgroupFolders(places.memory_mount, places.memory_path)) {
    LimitMemory(group + "/memory.limit_in_bytes", &machine->memory_mib);
  }
}

void LimitByVersion2(const CgroupPlaces& places, Machine* machine) {
  if (places.v2_mount.empty()) return;
  for (const std::string& group : CgroupFolders(places.v2_mount, places.v2_path)) {
    // "QUOTA PERIOD" or "max PERIOD"
    const auto text = ReadFile(group + "/cpu.max");
    const std::vector<std::string> words =
        text.ok() ? Split(Trim(*text), ' ') : std::vector<std::string>();
    if (words.size() == 2) {
      LimitCpus(ParseInteger(words[0]), ParseInteger(words[1]), &machine->cpus);
    }
    LimitMemory(group + "/memory.max", &machine->memory_mib);
  }
}

}  // namespace

Machine MeasureMachine(const std::string& proc) {
  Machine machine;
  machine.cpus = AllowedCpus();
  machine.memory_mib = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<double>(sysconf(_SC_PAGESIZE)) / kBytesPerMib;
  machine.gpus = GpusOf("/dev", GetEnvironment(kVisibleGpus));
  const auto mountinfo = ReadFile(proc + "/self/mountinfo");
  const auto cgroup = ReadFile(proc + "/self/cgroup");
  if (!mountinfo.ok() || !cgroup.ok()) return machine;
  const CgroupPlaces places = FindCgroups(*mountinfo, *cgroup);
  LimitByVersion1(places, &machine);
  LimitByVersion2(places, &machine);
  return machine;
}

std::vector<std::string> GpusOf(const std::string& devices,
                                const std::optional<std::string>& visible) {
  std::vector<std::string> gpus;
  if (visible) {
    for (const std::string& name : Split(*visible, ',')) {
      // CUDA sees nothing from the first one on that is none.
      if (Trim(name).empty() || Trim(name).front() == '-') break;
      gpus.emplace_back(Trim(name));
    }
    return gpus;
  }
  constexpr std::string_view kDevice = "nvidia";  // nvidia0; nvidiactl and others are no GPUs
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(devices, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kDevice) || !ParseInteger(name.substr(kDevice.size()))) continue;
    // CUDA counts those that it sees from 0, whatever the devices' numbers are.
    gpus.push_back(std::to_string(gpus.size()));
  }
  return gpus;
}

std::string CpuModel(const std::string& proc) {
  const Result<std::string> text = ReadFile(proc + "/cpuinfo");
  if (!text.ok()) return "";
  for (const std::string& line : Split(*text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || Trim(line.substr(0, colon)) != "model name") continue;
    return std::string(Trim(line.substr(colon + 1)));
  }
  return "";
}

}  // namespace lambdadnn
