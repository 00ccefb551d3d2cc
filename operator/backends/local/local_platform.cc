// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/local_platform.h"

#include <algorithm>
#include <cstdio>

#include "common/base/statistics.h"
#include "common/base/text.h"
#include "common/plan/money.h"
#include "operator/backends/local/cgroups.h"

namespace lambdadnn {
namespace {

constexpr double kMilliCpuPerGib = 1000;
constexpr double kCpuPeriodSeconds = kCpuPeriodMicroseconds * 1e-6;
constexpr double kGibSecondPrice = 1.66667e-5;
constexpr double kMemoryShare = 0.8;
constexpr int kMaxFunctions = 32;
// CUDA takes about a GiB of a worker.
constexpr int kMostMibWithGpus = 4096;

constexpr int kProbeRounds = 5;
constexpr size_t kProbeBytes = size_t{1} << 20;

struct ProbeTimes {
  std::vector<double> small;
  std::vector<double> large;
};

Status ProbeOnce(Runtime& runtime, ObjectStore& store, const std::string& key, const Bytes& payload,
                 std::vector<double>* seconds) {
  const Instant begin = runtime.clock.Now();
  LDNN_RETURN_IF_ERROR(store.Put(key, ByteView(payload), PutOptions{.ephemeral = true}));
  LDNN_RETURN_IF_ERROR(store.Get(key).status());
  // A PUT and a GET.
  seconds->push_back(ToSeconds(runtime.clock.Now() - begin) / 2);
  return OkStatus();
}

}  // namespace

Platform LocalPlatform(const Machine& machine) {
  Platform platform;
  platform.memory.min_mib = 256;
  platform.memory.max_mib = 1024;
  platform.memory.step_mib = 64;
  platform.milli_cpu_per_gib = kMilliCpuPerGib;
  platform.cpu_period_seconds = kCpuPeriodSeconds;
  // Control groups and the functions' own pacing keep what one period has left over.
  platform.cpu_burst_seconds = kCpuPeriodSeconds;
  platform.total_milli_cpu = {1000.0 * machine.cpus, Origin::kMeasured};
  platform.total_memory_mib = {kMemoryShare * machine.memory_mib, Origin::kMeasured};
  platform.total_gpus = {static_cast<double>(machine.gpus.size()), Origin::kMeasured};
  if (!machine.gpus.empty()) platform.memory.max_mib = kMostMibWithGpus;
  platform.max_functions = kMaxFunctions;
  platform.function_timeout_seconds = 900;
  platform.prices.gib_second = kGibSecondPrice;
  platform.prices.currency = kUsDollar;
  return platform;
}

void LimitToMachine(const Machine& machine, Platform* platform) {
  const Platform whole = LocalPlatform(machine);
  if (!platform->total_milli_cpu.known()) platform->total_milli_cpu = whole.total_milli_cpu;
  if (!platform->total_memory_mib.known()) platform->total_memory_mib = whole.total_memory_mib;
  // No function can have one that is not there.
  if (platform->total_gpus.Or(whole.total_gpus) >= whole.total_gpus) {
    platform->total_gpus = whole.total_gpus;
  }
}

Status MeasureStore(Runtime& runtime, ObjectStore& store, Platform* platform) {
  const std::string prefix = "lambdadnn-probe/" + MakeUuid(runtime.random) + "/";
  const Bytes small(1);
  const Bytes large(kProbeBytes, std::byte{1});
  ProbeTimes times;
  Status status;
  for (int round = 0; round < kProbeRounds && status.ok(); ++round) {
    const std::string key = prefix + std::to_string(round);
    status = ProbeOnce(runtime, store, key + "s", small, &times.small);
    if (status.ok()) status = ProbeOnce(runtime, store, key + "l", large, &times.large);
  }
  const Status cleaned = DeletePrefix(store, prefix).status();
  LDNN_RETURN_IF_ERROR(status);
  LDNN_RETURN_IF_ERROR(cleaned);
  const double request = Median(times.small);
  // A busy machine may answer the small requests as slowly as the large ones.
  const double whole = Median(times.large);
  const double transfer = std::max(whole - request, whole / 10);
  const OptionalQuantity bytes_per_second = {static_cast<double>(kProbeBytes) / transfer,
                                             Origin::kMeasured};
  platform->store_request_seconds = {request, Origin::kMeasured};
  platform->store_bytes_per_second = bytes_per_second;
  platform->function_store_slope = 0;
  platform->function_store_intercept = bytes_per_second;
  platform->function_network_bytes_per_second = bytes_per_second;
  platform->parameter_server_network_bytes_per_second = bytes_per_second;
  return OkStatus();
}

std::string DescribePlatform(const Machine& machine, const Platform& platform) {
  char text[200];
  std::snprintf(text, sizeof text, "%.3g %s, %.3g GiB of memory", machine.cpus,
                machine.cpus == 1 ? "core" : "cores", machine.memory_mib / 1024);
  std::string described = text;
  if (!machine.gpus.empty()) described += ", " + CountOf(std::ssize(machine.gpus), "GPU");
  if (!platform.store_bytes_per_second.known()) return described;
  char store[100];
  std::snprintf(store, sizeof store, "; store: %.0f MB/s, %.2f ms a request",
                platform.store_bytes_per_second / 1e6, platform.store_request_seconds * 1e3);
  return described + store;
}

}  // namespace lambdadnn
