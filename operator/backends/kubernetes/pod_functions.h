// SPDX-License-Identifier: Apache-2.0
// The functions of a job as its pods show them, with their logs; ending one by deleting its pod.
// What backends of pods have in common; thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/kubernetes/cluster_reader.h"
#include "operator/backends/kubernetes/instance_logs.h"
#include "operator/backends/kubernetes/pod_index.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

class PodFunctions {
 public:
  struct Options {
    // Between SIGTERM and SIGKILL of a pod that is deleted.
    int grace_seconds = 2;
    // Where a pod's function takes slices; no host = nowhere yet.
    std::function<Endpoint(const Json& pod)> endpoint_of;
  };

  // All outlive this. `nodes` tells the kind of a function's node.
  PodFunctions(KubeClient& kube, Runtime& runtime, PodIndex& pods, InstanceLogs& logs,
               ClusterReader& nodes, Options options)
      : kube_(kube),
        runtime_(runtime),
        pods_(pods),
        logs_(logs),
        nodes_(nodes),
        options_(std::move(options)) {}

  // Reads once the last log line of each container that has ended. `adjust`, if any, may change the
  // newest run in a pod. The pods are synced.
  std::vector<FunctionInstance> List(
      const JobIdentity& job,
      const std::function<void(const Json& pod, FunctionInstance*)>& adjust = nullptr);
  Result<std::string> Logs(const JobIdentity& job, const std::string& uid, int last_lines);
  // Ends this run and no later one.
  Status DeleteInstance(const JobIdentity& job, const std::string& uid);
  Status DeletePod(const Json& pod);
  // The kubelet would start them again later than a new pod is ready.
  Status DeleteCrashLooping(const JobIdentity& job, const std::string& group);

 private:
  KubeClient& kube_;
  Runtime& runtime_;
  PodIndex& pods_;
  InstanceLogs& logs_;
  ClusterReader& nodes_;
  const Options options_;
};

}  // namespace lambdadnn
