// SPDX-License-Identifier: Apache-2.0
// FunctionBackend for Knative Serving: one Service per group, pods as instances. One watch of all
// our pods, however many jobs there are, shows what runs; Services are read by name when a group is
// made or deleted. All state is in the API server, so a new leader's backend sees what its
// predecessor saw.
//
// Slices go to the pods' own addresses: over TLS to the function itself, or through its queue-proxy
// where it has no certificate. With addressing Service each
// function has a Service of its own, and slices go to its name once Knative reports its route as
// ready. A crash-looping pod is deleted when its group is ensured, which makes Knative start
// another.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/backends/cluster_bound.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/knative/service_routes.h"
#include "operator/backends/knative/service_writer.h"
#include "operator/backends/kubernetes/cluster_reader.h"
#include "operator/backends/kubernetes/instance_logs.h"
#include "operator/backends/kubernetes/job_isolation.h"
#include "operator/backends/kubernetes/pod_functions.h"
#include "operator/backends/kubernetes/pod_index.h"
#include "operator/kube/event_recorder.h"
#include "operator/kube/kube_client.h"
#include "operator/resources/knative_service.h"
#include "operator/resources/network_policy.h"

namespace lambdadnn {

class KnativeBackend final : public FunctionBackend, public ClusterBound {
 public:
  struct Options {
    KnativeOptions services;
    std::vector<std::string> namespaces = {};  // empty = all
    // Between SIGTERM and SIGKILL of a deleted pod: its slice has ended or is given up, so that
    // Knative's own drain of 30 s would only hold its memory.
    int grace_seconds = 2;
    // A deleted pod that is still there so long after its grace counts as gone: its node is lost,
    // and what runs there still is fenced like any function that was cut off.
    double lost_node_seconds = 60;
    // A Service that was found correct is not read again for this long.
    double service_seconds = 2;
    // A server-side dry run of a create; null = no dry runs.
    std::function<Result<Json>(const ResourceType&, const Json&)> try_create = nullptr;
    // How long the cluster's limits are cached.
    double limits_seconds = 30;
    // What bounds the pods of a job, and Secrets of their namespace that they pull images with; the
    // rest of JobIsolation's options are those above.
    std::optional<JobNetworkOptions> network = {};
    std::vector<std::string> pull_secrets = {};
    std::function<void(EventDraft)> record_event = nullptr;
  };

  // All outlive this. The watch begins at once.
  KnativeBackend(KubeClient& kube, Runtime& runtime, Options options);

  BackendCapabilities capabilities() const override {
    return CapabilitiesOf(BackendKind::kKnative);
  }
  // A Service that exists with another scale is rescaled through its PodAutoscaler, which keeps the
  // pods that stay. kInvalidArgument: the cluster refuses the Service, with its message.
  Status EnsureGroup(const FunctionGroup& group) override;
  Status DeleteGroup(const JobIdentity& job, const std::string& group) override;
  Status DeleteInstance(const JobIdentity& job, const std::string& uid) override;
  Status ReleaseJob(const JobIdentity& job) override;
  // kUnavailable until the pods have been listed once. Also restores the job's isolation, and reads
  // once the last log line of each container that has ended.
  Result<std::vector<FunctionInstance>> List(const JobIdentity& job) override;
  // kUnimplemented: a revision's CPU cannot change.
  Status SetCpu(const JobIdentity& job, const std::string& uid, int milli_cpu) override;
  Result<std::string> Logs(const JobIdentity& job, const std::string& uid, int last_lines) override;
  // What other pods leave on the nodes in all; no limit where nodes may not be read.
  Result<FunctionCapacity> Capacity() override;
  Result<ClusterLimits> Limits(const std::string& namespace_name, const PodTemplate& pods) override;
  // A server-side dry run, which Knative extends to the pod if configured. A refusal because of a
  // used-up quota does not count, since other pods end.
  Status Preflight(const FunctionGroup& group) override;
  std::string IsolationName() const override { return "pods"; }

 private:
  Status EndPods(const JobIdentity& job, const std::string& group);

  KubeClient& kube_;
  Runtime& runtime_;
  const Options options_;
  ClusterReader reader_;
  JobIsolation isolation_;
  InstanceLogs logs_;
  PodIndex pods_;  // it tells logs_
  PodFunctions functions_;
  ServiceWriter services_;
  ServiceRoutes routes_;
};

}  // namespace lambdadnn
