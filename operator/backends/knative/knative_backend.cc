// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/knative_backend.h"

#include "operator/backends/knative/knative_limits.h"
#include "operator/backends/knative/pod_endpoint.h"
#include "operator/backends/knative/preflight.h"
#include "operator/backends/kubernetes/pod_instances.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

ClusterReader::Options ReaderOptions(const KnativeBackend::Options& options) {
  ClusterReader::Options with = KnativeReaderOptions(options.services);
  with.namespaces = options.namespaces;
  with.fresh_seconds = options.limits_seconds;
  with.watch = true;
  return with;
}

}  // namespace

KnativeBackend::KnativeBackend(KubeClient& kube, Runtime& runtime, Options options)
    : kube_(kube),
      runtime_(runtime),
      options_(std::move(options)),
      reader_(kube, runtime, ReaderOptions(options_)),
      isolation_(kube, runtime,
                 {.network = options_.network,
                  .namespaces = options_.namespaces,
                  .pull_secrets = options_.pull_secrets,
                  .record_event = options_.record_event,
                  .seen_seconds = options_.service_seconds}),
      logs_(kube, runtime, pods_),
      pods_(kube, runtime,
            {.namespaces = options_.namespaces, .lost_node_seconds = options_.lost_node_seconds},
            [this](const ObjectName& pod) { logs_.Forget(pod); }),
      functions_(kube, runtime, pods_, logs_, reader_,
                 {.grace_seconds = options_.grace_seconds, .endpoint_of = KnativeEndpointOf}),
      services_(kube, runtime,
                {.services = options_.services, .seen_seconds = options_.service_seconds}, reader_,
                pods_),
      routes_(kube, runtime, options_.namespaces) {
  pods_.Start();
}

Status KnativeBackend::EnsureGroup(const FunctionGroup& group) {
  const JobIdentity job = JobOf(group);
  if (group.count == 0) return DeleteGroup(job, group.name);
  LDNN_RETURN_IF_ERROR(pods_.CheckSynced());
  LDNN_RETURN_IF_ERROR(functions_.DeleteCrashLooping(job, group.name));
  if (services_.SeenRight(group)) return OkStatus();
  // Before the first pod, and again for those that come later.
  LDNN_ASSIGN_OR_RETURN(const PodIdentity identity, isolation_.Ensure(group));
  return services_.Ensure(group, identity);
}

// Before their Service is deleted, which would give them Knative's drain of 30 s, which a kubelet
// does not shorten once it has begun. Without their account no pods replace them.
Status KnativeBackend::EndPods(const JobIdentity& job, const std::string& group) {
  bool withdrawn = false;
  for (const std::shared_ptr<const Json>& pod : pods_.PodsOf(job, group)) {
    if (IsBeingDeleted(*pod)) continue;
    if (!withdrawn) {
      LDNN_ASSIGN_OR_RETURN(withdrawn, isolation_.WithdrawAccount(AccountOf(*pod), job.uid));
      if (!withdrawn) return OkStatus();
    }
    LDNN_RETURN_IF_ERROR(functions_.DeletePod(*pod));
  }
  return OkStatus();
}

Status KnativeBackend::DeleteGroup(const JobIdentity& job, const std::string& group) {
  services_.LookAgain();
  LDNN_RETURN_IF_ERROR(EndPods(job, group));
  LDNN_RETURN_IF_ERROR(services_.Delete(job, group));
  // Others end with their Service, only late.
  for (const std::shared_ptr<const Json>& pod : pods_.PodsOf(job, group)) {
    if (EndsLater(*pod, options_.grace_seconds)) LDNN_RETURN_IF_ERROR(functions_.DeletePod(*pod));
  }
  return OkStatus();
}

Status KnativeBackend::DeleteInstance(const JobIdentity& job, const std::string& uid) {
  return functions_.DeleteInstance(job, uid);
}

Status KnativeBackend::ReleaseJob(const JobIdentity& job) {
  return isolation_.Release(job.namespace_name, job.name, job.uid);
}

Result<std::vector<FunctionInstance>> KnativeBackend::List(const JobIdentity& job) {
  LDNN_RETURN_IF_ERROR(pods_.CheckSynced());
  isolation_.Keep(job.uid);
  return functions_.List(job, [this](const Json& pod, FunctionInstance* instance) {
    if (instance->phase != FunctionPhase::kReady || routes_.Reach(pod)) return;
    instance->phase = FunctionPhase::kPending;
    instance->reason = "RouteNotReady";
    instance->message = "Knative has no route to the function's Service yet";
  });
}

Status KnativeBackend::SetCpu(const JobIdentity&, const std::string&, int) {
  return UnimplementedError("the CPU quota of a pod cannot change while it runs");
}

Result<std::string> KnativeBackend::Logs(const JobIdentity& job, const std::string& uid,
                                         int last_lines) {
  return functions_.Logs(job, uid, last_lines);
}

Status KnativeBackend::Preflight(const FunctionGroup& group) {
  const FunctionGroup first = ServicesOf(group).front();
  LDNN_ASSIGN_OR_RETURN(Json service, KnativeService(first, services_.OptionsIn(group)));
  if (options_.try_create == nullptr) return OkStatus();
  return PreflightService(std::move(service), options_.try_create);
}

Result<FunctionCapacity> KnativeBackend::Capacity() { return reader_.Capacity(); }

Result<ClusterLimits> KnativeBackend::Limits(const std::string& namespace_name,
                                             const PodTemplate& pods) {
  return reader_.Limits(namespace_name, pods);
}

}  // namespace lambdadnn
