// SPDX-License-Identifier: Apache-2.0
// Reads the limits that a cluster sets to functions: nodes and the requests of other pods on them,
// quotas and limit ranges of the job's namespace, and the function platform's own configuration.
// For the operator's planner and for `kubectl lambdadnn plan`, each with its own rights: what these
// do not allow to read is left out and reported.
//
// Answers are cached for a while, so that a thousand jobs cost as much as one; nodes and pods are
// watched where that is wanted. Thread-safe; no call waits for another's requests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/kubernetes/node_usage.h"
#include "operator/cluster_view/cluster_limits.h"
#include "operator/cluster_view/node_capacity.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

class ClusterReader {
 public:
  struct Options {
    // Whose functions are ours; those of other namespaces are pods like any others. Empty = all.
    std::vector<std::string> namespaces = {};
    // Requested next to each function in its pod.
    PodResources sidecar = {};
    // The least of its CPU where a quota wants a limit of each container's; 0 = as above.
    int sidecar_milli_cpu_limit = 0;
    // Limits of the function platform beside those of Kubernetes; null = none.
    std::function<Result<ClusterLimits>(KubeClient& kube)> read_platform = nullptr;
    // How long an answer is cached.
    double fresh_seconds = 30;
    // Nodes and pods are watched from the beginning on, in place of listed when they are needed.
    bool watch = false;
  };

  // All outlive this.
  ClusterReader(KubeClient& kube, Runtime& runtime, Options options);

  // For a job with such pods. Errors are those of a server that does not answer: forbidden
  // or absent objects are reported in `unknown`.
  Result<ClusterLimits> Limits(const std::string& namespace_name, const PodTemplate& pods);
  // For the functions of all jobs together; no limit where nodes may not be read.
  Result<FunctionCapacity> Capacity();
  // NodeKindOf the node of this name; "" where nodes are not watched, or this one is not known.
  std::string NodeKind(const std::string& node);

 private:
  struct Kept {
    ClusterLimits limits;
    Instant at{};
  };

  template <typename Kind>
  bool IsFresh(const std::optional<std::pair<Kind, Instant>>& kept, double seconds) const;
  Result<std::shared_ptr<const NodeUsage>> UsageNow();
  Result<ClusterLimits> PlatformNow();
  // Adds what holds in the namespace.
  Status ReadNamespace(const std::string& namespace_name, const NodeUsage& usage,
                       ClusterLimits* limits);

  KubeClient& kube_;
  Runtime& runtime_;
  const Options options_;
  mutable std::mutex mutex_;
  // With the mutex:
  std::optional<std::pair<std::shared_ptr<const NodeUsage>, Instant>> usage_;
  std::optional<std::pair<ClusterLimits, Instant>> platform_;
  std::map<std::string, Kept> namespaces_;
  std::map<std::string, std::pair<std::string, Instant>> node_kinds_;  // by the node's name
  // Null without Options::watch.
  std::unique_ptr<WatchedNodeUsage> watched_;
};

}  // namespace lambdadnn
