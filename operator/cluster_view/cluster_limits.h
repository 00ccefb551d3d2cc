// SPDX-License-Identifier: Apache-2.0
// A cluster's limits for the functions of one job: read from its objects by pure functions, and
// applied to the configured platform. The configured platform is an upper bound: a cluster that
// allows less narrows it, one that allows more changes nothing.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "common/plan/workload.h"
#include "operator/cluster_view/node_capacity.h"

namespace lambdadnn {

// What other pods leave on a node, and which functions of the job it may run.
struct FreeNode : PodResources {
  bool takes_workers = true;
  bool takes_servers = true;
};

struct ClusterLimits {
  // Of a revision of Knative; 0 = none is known.
  double max_timeout_seconds = 0;
  int max_scale = 0;
  std::set<std::string> disabled_features = {};
  // Of all functions of the function platform, and what says so; 0 = none is known.
  int max_functions = 0;
  std::string max_functions_source = "";
  // The shortest time-out of what a request passes on its way to a function, and which that is; 0 =
  // none is known.
  double request_timeout_seconds = 0;
  std::string request_timeout_source = "";
  // Of one function, by the LimitRanges of the namespace; 0 = none.
  double min_memory_mib = 0;
  double max_memory_mib = 0;
  double max_milli_cpu = 0;
  // Of all functions in the namespace, by its ResourceQuotas; absent inside = not limited.
  struct Quota {
    std::optional<double> memory_mib = {};
    std::optional<double> milli_cpu = {};
    std::optional<double> pods = {};
    std::optional<double> gpus = {};
    bool limits_cpu = false;  // every container must have a limit of CPU
  } quota;
  // Each that the job may use; absent = not known.
  std::optional<std::vector<FreeNode>> nodes = {};
  // Requested next to each function in its pod.
  PodResources sidecar = {};
  // One sentence for each thing that could not be read, and what is not counted therefore.
  std::vector<std::string> unknown = {};
};

// A LimitRange of the namespace.
void ReadLimitRange(const Json& limit_range, ClusterLimits* limits);
// A ResourceQuota of the namespace, of which `own` is in use by functions: they end when jobs do,
// so that it does not count as taken. Scopes that functions are not in are left out, and so is that
// of priority classes.
void ReadQuota(const Json& quota, const PodResources& own, ClusterLimits* limits);

struct NarrowedPlatform {
  Platform platform;
  // A sentence for each figure of the platform that the cluster narrows, for people.
  std::vector<std::string> narrowed;
  // Not even the smallest function fits now: why; empty = it does.
  std::string obstacle;
  // What ends it, where that is no room.
  std::string remedy = "";
};
// For a job whose workers have so many GPUs each.
NarrowedPlatform WithinLimits(const Platform& configured, const ClusterLimits& limits, int gpu = 0);

}  // namespace lambdadnn
