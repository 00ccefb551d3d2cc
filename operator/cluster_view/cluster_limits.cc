// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster_view/cluster_limits.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/text.h"
#include "common/json/json_path.h"
#include "operator/cluster_view/knative_config.h"
#include "operator/cluster_view/openfaas_timeouts.h"

namespace lambdadnn {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
// A function's CPU is rounded to whole mCPU.
constexpr double kCpuRounding = 0.5;

std::string NameIn(const Json& object, const char* kind) {
  const Json* name = FindPath(object, {"metadata", "name"});
  return std::string(kind) + " " +
         (name != nullptr && name->is_string() ? name->get<std::string>() : "without a name");
}

void TakeSmaller(double amount, double* limit) {
  if (amount > 0 && (*limit <= 0 || amount < *limit)) *limit = amount;
}

void TakeSmaller(double amount, std::optional<double>* limit) {
  *limit = std::min(limit->value_or(amount), amount);
}

// Whether pods without a deadline and with resource requests are in the scope.
bool InScope(const std::string& scope) {
  return scope == "NotTerminating" || scope == "NotBestEffort";
}

bool IsForFunctions(const Json& quota) {
  const Json* selector = FindPath(quota, {"spec", "scopeSelector", "matchExpressions"});
  if (selector != nullptr && selector->is_array() && !selector->empty()) return false;
  const Json* scopes = FindPath(quota, {"spec", "scopes"});
  if (scopes == nullptr || !scopes->is_array()) return true;
  return std::all_of(scopes->begin(), scopes->end(), [](const Json& scope) {
    return scope.is_string() && InScope(scope.get<std::string>());
  });
}

std::string Mib(double amount) { return FormatDouble(std::floor(amount)) + " MiB"; }
std::string MilliCpu(double amount) { return FormatDouble(std::floor(amount)) + " mCPU"; }

// The least of several bounds and where it comes from.
struct Bound {
  double value = kUnlimited;
  std::string source;
  void Take(double amount, const std::string& from) {
    if (amount >= value) return;
    value = amount;
    source = from;
  }
};

// Memory of the largest function that this much CPU allows.
double MemoryOfCpu(const Platform& platform, double milli_cpu) {
  if (platform.milli_cpu_per_gib <= 0) return kUnlimited;
  return (milli_cpu - kCpuRounding) / platform.milli_cpu_per_gib * kMibPerGib;
}

double LargestOnNode(const Platform& platform, const PodResources& node,
                     const PodResources& sidecar) {
  if (node.pods < 1) return 0;
  return std::min(node.memory_mib - sidecar.memory_mib,
                  MemoryOfCpu(platform, node.milli_cpu - sidecar.milli_cpu));
}

class Narrowing {
 public:
  Narrowing(const Platform& configured, const ClusterLimits& limits, int gpu)
      : limits_(limits), gpu_(gpu), platform_(configured) {
    // What the pods really have, also where the configuration counts less.
    sidecar_ = limits.sidecar;
    sidecar_.memory_mib = std::max(sidecar_.memory_mib, platform_.sidecar_memory_mib);
  }

  NarrowedPlatform Run() {
    NarrowTimeout();
    if (gpu_ > 0) NarrowGpus();
    NarrowFunction();
    NarrowTotals();
    NarrowCount();
    out_.platform = platform_;
    return std::move(out_);
  }

 private:
  void Say(const std::string& sentence) { out_.narrowed.push_back(sentence); }
  void Refuse(const std::string& sentence) {
    if (out_.obstacle.empty()) out_.obstacle = sentence;
  }

  void NarrowTimeout() {
    if (IsTooShort(limits_.request_timeout_seconds) && out_.obstacle.empty()) {
      Refuse(TooShortText(limits_.request_timeout_seconds, limits_.request_timeout_source));
      out_.remedy = kTimeoutRemedy;
    }
    const double most = limits_.max_timeout_seconds;
    if (most <= 0 || most >= platform_.function_timeout_seconds) return;
    platform_.function_timeout_seconds = most;
    Say("a request ends after " + FormatDouble(most) +
        " s (Knative's max-revision-timeout-seconds)");
  }

  void NarrowFunction() {
    Platform::Memory& memory = platform_.memory;
    const int step = std::max(1, memory.step_mib);
    Bound most;
    if (limits_.max_memory_mib > 0) most.Take(limits_.max_memory_mib, "a LimitRange");
    if (limits_.max_milli_cpu > 0) {
      most.Take(MemoryOfCpu(platform_, limits_.max_milli_cpu), "the CPU that a LimitRange allows");
    }
    if (limits_.nodes.has_value()) {
      double largest = 0;
      for (const FreeNode& node : *limits_.nodes) {
        if (!node.takes_workers || node.gpus < gpu_) continue;
        largest = std::max(largest, LargestOnNode(platform_, node, sidecar_));
      }
      most.Take(largest, gpu_ > 0 ? "the most that a node with a GPU has left"
                                  : "the most that a node has left");
    }
    if (limits_.quota.memory_mib.has_value()) {
      most.Take(*limits_.quota.memory_mib - sidecar_.memory_mib, "a ResourceQuota");
    }
    if (limits_.min_memory_mib > memory.min_mib) {
      const double steps = std::ceil((limits_.min_memory_mib - memory.min_mib) / step);
      const double least = memory.min_mib + steps * step;
      if (least > memory.max_mib) {
        Refuse("a LimitRange requires at least " + Mib(limits_.min_memory_mib) +
               " of a function, more than the platform's " + Mib(memory.max_mib));
        return;
      }
      memory.min_mib = static_cast<int>(least);
      Say("a function has at least " + Mib(least) + " (a LimitRange)");
    }
    if (most.value >= memory.max_mib) return;
    if (most.value < memory.min_mib) {
      Refuse("a function has at most " + Mib(std::max(0.0, most.value)) + " (" + most.source +
             "), less than the smallest of " + Mib(memory.min_mib));
      return;
    }
    const double steps = std::floor((most.value - memory.min_mib) / step);
    memory.max_mib = memory.min_mib + static_cast<int>(steps) * step;
    Say("a function has at most " + Mib(memory.max_mib) + " (" + most.source + ")");
  }

  void NarrowTotals() {
    Bound memory;
    Bound cpu;
    if (limits_.nodes.has_value()) {
      PodResources all;
      for (const FreeNode& node : *limits_.nodes) {
        // One that has no capacity for the smallest function has none for any.
        if (LargestOnNode(platform_, node, sidecar_) < platform_.memory.min_mib) continue;
        all += node;
        platform_.nodes.push_back({node.memory_mib, node.milli_cpu, node.pods, node.gpus,
                                   node.takes_workers, node.takes_servers});
      }
      platform_.machine_sidecar_memory_mib = sidecar_.memory_mib;
      platform_.machine_sidecar_milli_cpu = sidecar_.milli_cpu;
      memory.Take(all.memory_mib, "the free capacity of the nodes");
      cpu.Take(all.milli_cpu, "the free capacity of the nodes");
    }
    const ClusterLimits::Quota& quota = limits_.quota;
    if (quota.memory_mib.has_value()) memory.Take(*quota.memory_mib, "a ResourceQuota");
    if (quota.milli_cpu.has_value()) cpu.Take(*quota.milli_cpu, "a ResourceQuota");
    if (platform_.milli_cpu_per_gib > 0 && cpu.value < kUnlimited) {
      memory.Take(TotalOfCpu(cpu.value), "the " + MilliCpu(cpu.value) + " of " + cpu.source);
    }
    const double configured = platform_.total_memory_mib;
    if (memory.value < (configured > 0 ? configured : kUnlimited)) {
      // 0 would be no limit.
      platform_.total_memory_mib = std::max(1.0, memory.value);
      Say("all functions have " + Mib(memory.value) + " (" + memory.source + ")");
    }
  }

  // The memory, sidecars included, of functions with this much CPU in all. A function's CPU is
  // proportional to its memory; CPU that its sidecar requests beyond that proportion is reserved
  // for the largest possible number of functions.
  double TotalOfCpu(double milli_cpu) const {
    const double rate = platform_.milli_cpu_per_gib / kMibPerGib;
    const double beyond =
        std::max(0.0, sidecar_.milli_cpu + kCpuRounding - platform_.sidecar_memory_mib * rate);
    const double least = platform_.memory.min_mib * rate + sidecar_.milli_cpu;
    const double most = std::min<double>(platform_.max_functions, std::floor(milli_cpu / least));
    return std::max(0.0, milli_cpu - most * beyond) / rate;
  }

  // A revision's limit, of workers or of servers, is applied to both together.
  void NarrowCount() {
    Bound most;
    if (limits_.max_scale > 0) {
      most.Take(limits_.max_scale, std::string("Knative's max-scale-limit in ConfigMap ") +
                                       kKnativeNamespace + "/" + kKnativeAutoscaler);
    }
    if (limits_.max_functions > 0) most.Take(limits_.max_functions, limits_.max_functions_source);
    if (limits_.quota.pods.has_value()) most.Take(*limits_.quota.pods, "a ResourceQuota");
    if (limits_.nodes.has_value()) {
      PodResources all;
      for (const PodResources& node : *limits_.nodes) all += node;
      most.Take(all.pods, "the pods that nodes still take");
    }
    if (most.value >= platform_.max_functions) return;
    if (most.value < 2) {
      // A worker and a server.
      Refuse("there may be " + FormatDouble(std::floor(most.value)) + " functions (" + most.source +
             "), and a job needs two at least");
      return;
    }
    platform_.max_functions = static_cast<int>(most.value);
    Say("there are at most " + FormatDouble(std::floor(most.value)) + " functions (" + most.source +
        ")");
  }

  void NarrowGpus() {
    Bound most;
    if (limits_.quota.gpus.has_value()) most.Take(*limits_.quota.gpus, "a ResourceQuota");
    if (limits_.nodes.has_value()) {
      double all = 0;
      for (const FreeNode& node : *limits_.nodes) {
        if (node.takes_workers) all += std::floor(node.gpus);
      }
      most.Take(all, std::string("the free ") + kGpuResource + " of the nodes");
    }
    if (most.value >= platform_.total_gpus.Or(kUnlimited)) return;
    platform_.total_gpus = OptionalQuantity(most.value, Origin::kMeasured);
    const std::string gpus = FormatDouble(std::floor(most.value)) + " GPUs (" + most.source + ")";
    if (most.value < gpu_) return Refuse("all workers together have " + gpus);
    Say("all workers have " + gpus);
  }

  const ClusterLimits& limits_;
  const int gpu_;
  Platform platform_;
  PodResources sidecar_;
  NarrowedPlatform out_;
};

}  // namespace

void ReadLimitRange(const Json& limit_range, ClusterLimits* limits) {
  const std::string what = NameIn(limit_range, "LimitRange");
  const Json* items = FindPath(limit_range, {"spec", "limits"});
  if (items == nullptr || !items->is_array()) return;
  for (const Json& item : *items) {
    const Json* type = FindPath(item, {"type"});
    const bool of_pods = type != nullptr && *type == "Pod";
    if (!of_pods && (type == nullptr || *type != "Container")) continue;
    const Json* most = FindPath(item, {"max"});
    const Json* least = FindPath(item, {"min"});
    const double memory = ReadAmount(most, "memory", what, &limits->unknown);
    const double cpu = ReadAmount(most, "cpu", what, &limits->unknown);
    const double beside_memory = of_pods ? limits->sidecar.memory_mib : 0;
    const double beside_cpu = of_pods ? limits->sidecar.milli_cpu : 0;
    // Less than the sidecar needs is a limit, too.
    if (memory > 0) TakeSmaller(std::max(1e-3, memory - beside_memory), &limits->max_memory_mib);
    if (cpu > 0) TakeSmaller(std::max(1e-3, cpu - beside_cpu), &limits->max_milli_cpu);
    const double smallest = ReadAmount(least, "memory", what, &limits->unknown) - beside_memory;
    limits->min_memory_mib = std::max(limits->min_memory_mib, smallest);
  }
}

void ReadQuota(const Json& quota, const PodResources& own, ClusterLimits* limits) {
  if (!IsForFunctions(quota)) return;
  const std::string what = NameIn(quota, "ResourceQuota");
  const Json* hard = FindPath(quota, {"status", "hard"});
  if (hard == nullptr) hard = FindPath(quota, {"spec", "hard"});
  const Json* used = FindPath(quota, {"status", "used"});
  if (hard == nullptr || !hard->is_object()) return;
  const auto left = [&](const char* resource, double in_use, std::optional<double>* limit) {
    if (!hard->contains(resource)) return;
    const size_t problems = limits->unknown.size();
    const double most = ReadAmount(hard, resource, what, &limits->unknown);
    if (limits->unknown.size() > problems) return;
    const double taken = ReadAmount(used, resource, what, &limits->unknown);
    TakeSmaller(std::max(0.0, most - std::max(0.0, taken - in_use)), limit);
  };
  for (const char* memory : {"requests.memory", "memory", "limits.memory"}) {
    left(memory, own.memory_mib, &limits->quota.memory_mib);
  }
  for (const char* cpu : {"requests.cpu", "cpu", "limits.cpu"}) {
    left(cpu, own.milli_cpu, &limits->quota.milli_cpu);
  }
  for (const char* pods : {"pods", "count/pods"}) left(pods, own.pods, &limits->quota.pods);
  left("requests.nvidia.com/gpu", own.gpus, &limits->quota.gpus);
  limits->quota.limits_cpu = limits->quota.limits_cpu || hard->contains("limits.cpu");
}

NarrowedPlatform WithinLimits(const Platform& configured, const ClusterLimits& limits, int gpu) {
  return Narrowing(configured, limits, gpu).Run();
}

}  // namespace lambdadnn
