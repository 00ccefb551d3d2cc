// SPDX-License-Identifier: Apache-2.0
// FunctionBackend for Knative Serving: one Service per group, pods as instances. What runs is known
// from one watch of all pods of ours, however many jobs there are; Services are asked for by name
// when a group is made or deleted. Nothing is kept here that the API server does not hold, so a new
// leader's backend sees what the one before saw.
//
// Slices go to the pods' own addresses, through their queue-proxy. A crash-looping pod is deleted
// when its group is ensured, which makes Knative start another.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/backends/function_backend.h"
#include "operator/kube/informer.h"
#include "operator/kube/kube_client.h"
#include "operator/resources/knative_service.h"

namespace lambdadnn {

// serving.knative.dev/v1 services; autoscaling.internal.knative.dev/v1alpha1 podautoscalers.
const ResourceType& KnativeServiceType();
const ResourceType& PodAutoscalerType();

class KnativeBackend final : public FunctionBackend {
 public:
  struct Options {
    KnativeOptions services;
    std::vector<std::string> namespaces = {};  // empty = all
    // Between SIGTERM and SIGKILL of a pod that goes with its group or alone: its slice is over or
    // given up, so that Knative's own drain of 30 s would only hold its memory.
    int grace_seconds = 5;
    // A Service that was seen right is not looked at again for this long.
    double service_seconds = 2;
    // How long the nodes' sum is taken for true.
    double capacity_seconds = 30;
  };

  // All outlive this. The watch begins at once.
  KnativeBackend(KubeClient& kube, Runtime& runtime, Options options);

  // A Service that exists with another scale is rescaled through its PodAutoscaler, which keeps the
  // pods that stay. kInvalidArgument: the cluster refuses the Service, in its words.
  Status EnsureGroup(const FunctionGroup& group) override;
  Status DeleteGroup(const std::string& job_uid, const std::string& group) override;
  Status DeleteInstance(const std::string& job_uid, const std::string& uid) override;
  // kUnavailable until the pods have been listed once.
  Result<std::vector<FunctionInstance>> List(const std::string& job_uid) override;
  // kUnimplemented: a revision's CPU cannot change.
  Status SetCpu(const std::string& job_uid, const std::string& uid, int milli_cpu) override;
  Result<std::string> Logs(const std::string& job_uid, const std::string& uid,
                           int last_lines) override;
  // What the nodes can give to pods in all; no limit where nodes may not be read.
  Result<FunctionCapacity> Capacity() override;
  std::string IsolationName() const override { return "pods"; }

 private:
  using Pods = std::vector<std::shared_ptr<const Json>>;

  void Index(const ObjectName& pod);
  Status CheckSynced() const;
  // All groups when `group` is empty.
  Pods PodsOf(const std::string& job_uid, const std::string& group) const;
  std::shared_ptr<const Json> PodOf(const std::string& job_uid, const std::string& uid) const;
  // Whether there is a Service of this group with this scale, as far as was seen lately.
  bool SeenRight(const FunctionGroup& group);
  Status CheckService(const FunctionGroup& group);
  Status CreateService(const FunctionGroup& group);
  Status Rescale(const Json& service, int count);
  Status DeletePod(const Json& pod);

  KubeClient& kube_;
  Runtime& runtime_;
  const Options options_;
  mutable std::mutex mutex_;
  // With the mutex:
  std::map<std::string, std::set<ObjectName>> pods_of_job_;  // by the job's uid
  std::map<ObjectName, std::string> job_of_pod_;
  struct Checked {
    int count = 0;
    Instant at{};
  };
  std::map<std::string, Checked> checked_;  // by job and group
  std::optional<FunctionCapacity> capacity_;
  Instant capacity_at_{};
  Informer pods_;  // last: it calls Index
};

}  // namespace lambdadnn
