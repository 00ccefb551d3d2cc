// SPDX-License-Identifier: Apache-2.0
// FunctionBackend for Knative Serving: one Service per group, pods as instances. What runs is known
// from one watch of all pods of ours, however many jobs there are; Services are asked for by name
// when a group is made or deleted. Nothing is kept here that the API server does not hold, so a new
// leader's backend sees what the one before saw.
//
// Slices go to the pods' own addresses, through their queue-proxy; with addressing Service, where
// each function has a Service of its own, to its name, once Knative says that its route is there. A
// crash-looping pod is deleted when its group is ensured, which makes Knative start another.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/backends/cluster_bound.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/knative/cluster_reader.h"
#include "operator/backends/knative/job_isolation.h"
#include "operator/kube/informer.h"
#include "operator/kube/kube_client.h"
#include "operator/resources/knative_service.h"

namespace lambdadnn {

// serving.knative.dev/v1 services; autoscaling.internal.knative.dev/v1alpha1 podautoscalers.
const ResourceType& KnativeServiceType();
const ResourceType& PodAutoscalerType();

class KnativeBackend final : public FunctionBackend, public ClusterBound {
 public:
  struct Options {
    KnativeOptions services;
    std::vector<std::string> namespaces = {};  // empty = all
    // Between SIGTERM and SIGKILL of a pod that goes with its group or alone: its slice is over or
    // given up, so that Knative's own drain of 30 s would only hold its memory.
    int grace_seconds = 2;
    // A deleted pod that is still there so long after its grace counts as gone: its node is lost,
    // and what runs there still is fenced like any function that was cut off.
    double lost_node_seconds = 60;
    // A Service that was seen right is not looked at again for this long.
    double service_seconds = 2;
    // Creates an object as a trial that leaves nothing; null = groups are not tried.
    std::function<Result<Json>(const ResourceType&, const Json&)> try_create = nullptr;
    // How long what the cluster allows is taken for true.
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
  // pods that stay. kInvalidArgument: the cluster refuses the Service, in its words.
  Status EnsureGroup(const FunctionGroup& group) override;
  Status DeleteGroup(const JobIdentity& job, const std::string& group) override;
  Status DeleteInstance(const JobIdentity& job, const std::string& uid) override;
  Status ReleaseJob(const JobIdentity& job) override;
  // kUnavailable until the pods have been listed once. Also mends what bounds the job's pods, and
  // asks once for the last words of each container that has ended.
  Result<std::vector<FunctionInstance>> List(const JobIdentity& job) override;
  // kUnimplemented: a revision's CPU cannot change.
  Status SetCpu(const JobIdentity& job, const std::string& uid, int milli_cpu) override;
  Result<std::string> Logs(const JobIdentity& job, const std::string& uid, int last_lines) override;
  // What other pods leave on the nodes in all; no limit where nodes may not be read.
  Result<FunctionCapacity> Capacity() override;
  Result<ClusterLimits> Limits(const std::string& namespace_name, const Json& runtime) override;
  // A server-side dry run, which Knative carries on to the pod where it is allowed to. What only a
  // quota that is used up refuses is no reason: others end.
  Status Preflight(const FunctionGroup& group) override;
  std::string IsolationName() const override { return "pods"; }

 private:
  using Pods = std::vector<std::shared_ptr<const Json>>;

  void Index(const ObjectName& pod);
  Status CheckSynced() const;
  // All groups when `group` is empty.
  Pods PodsOf(const JobIdentity& job, const std::string& group) const;
  std::shared_ptr<const Json> PodOf(const JobIdentity& job, const std::string& uid) const;
  // Whether there is a Service of this group with this scale, as far as was seen lately.
  bool SeenRight(const FunctionGroup& group);
  // `group` is one of ServicesOf its group.
  Status CheckService(const FunctionGroup& group, const PodIdentity& identity);
  // With their Secrets; members from this one on, where the group has members.
  Status DeleteServices(const JobIdentity& job, const std::string& group, int64_t first_member);
  Status CreateService(const FunctionGroup& group, const PodIdentity& identity);
  // As the namespace wants them.
  KnativeOptions OptionsIn(const FunctionGroup& group);
  Status CreateSecret(const FunctionGroup& group);
  // Of a plan that was made before Knative was told to allow less. kFailedPrecondition.
  Status CheckScale(const FunctionGroup& group);
  Status EnsureScale(const Json& service, const FunctionGroup& group);
  // Whether requests for the name of the pod's Service arrive.
  bool IsRouted(const Json& pod);
  bool IsOverdue(const Json& pod) const;
  Status DeletePod(const Json& pod);
  Status EndPods(const JobIdentity& job, const std::string& group);
  // Of this life of the pod's container.
  Result<std::string> ReadLog(const ObjectName& pod, const std::string& uid, int last_lines);
  // The last words of lives that are gone, and since when they are at least, in a look that began
  // at `now`. `more` becomes false when no other log should be asked for.
  void AddEnds(const Json& pod, Instant now, bool* more, std::vector<FunctionInstance>* lives);

  KubeClient& kube_;
  Runtime& runtime_;
  const Options options_;
  mutable std::mutex mutex_;
  // With the mutex:
  std::map<std::string, std::set<ObjectName>> pods_of_job_;  // by the job's uid
  std::map<ObjectName, std::string> job_of_pod_;
  std::map<ObjectName, Instant> deleted_since_;  // first seen so, by this clock
  struct End {
    Instant seen{};
    std::string last_line;
  };
  std::map<ObjectName, std::map<std::string, End>> ends_;  // of a pod's lives, by uid
  struct Checked {
    int count = 0;
    Instant at{};
  };
  std::map<std::string, Checked> checked_;  // by job and group
  ClusterReader reader_;
  JobIsolation isolation_;
  Informer pods_;  // it calls Index
  // Of all jobs, watched from the first one with addressing Service on; with the mutex.
  std::unique_ptr<Informer> services_;
};

}  // namespace lambdadnn
