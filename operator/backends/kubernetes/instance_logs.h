// SPDX-License-Identifier: Apache-2.0
// The logs of functions in pods, and the last line of those that have ended, which is read once.
// Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/kubernetes/pod_index.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

class InstanceLogs {
 public:
  // One listing of a job's functions, which does not wait long for all of their logs.
  struct Look {
    Instant begin{};
    bool more = true;  // false: no other log should be asked for
  };

  // All outlive this; `pods` tells it of those that are gone (Forget).
  InstanceLogs(KubeClient& kube, Runtime& runtime, const PodIndex& pods)
      : kube_(kube), runtime_(runtime), pods_(pods) {}

  // Of this run of the pod's container. kNotFound: it is not kept any more.
  Result<std::string> Read(const ObjectName& pod, const std::string& uid, int last_lines);
  // Adds the last log line of ended instances, and the least time since their end.
  void AddEnds(const Json& pod, Look* look, std::vector<FunctionInstance>* of_pod);
  void Forget(const ObjectName& pod);

 private:
  struct End {
    Instant seen{};
    std::string last_line;
  };

  KubeClient& kube_;
  Runtime& runtime_;
  const PodIndex& pods_;
  std::mutex mutex_;
  // With the mutex: of a pod's instances, by uid.
  std::map<ObjectName, std::map<std::string, End>> ends_;
};

}  // namespace lambdadnn
