// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/knative_backend.h"

#include "common/json/json_path.h"
#include "operator/backends/knative/pod_instances.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/node_capacity.h"

namespace lambdadnn {
namespace {

constexpr const char* kMinScale = "autoscaling.knative.dev/min-scale";
constexpr const char* kMaxScale = "autoscaling.knative.dev/max-scale";
constexpr int kPageSize = 500;

std::string ScaleOf(const Json& service) {
  const Json* annotations = FindPath(service, {"spec", "template", "metadata", "annotations"});
  return annotations == nullptr ? "" : TextField(*annotations, kMinScale);
}

std::string KeyOf(const FunctionGroup& group) { return group.job_uid + "/" + group.name; }

bool Ignorable(const Status& status) {
  return status.ok() || status.code() == StatusCode::kNotFound;
}

}  // namespace

const ResourceType& KnativeServiceType() {
  static const ResourceType type = {"serving.knative.dev", "v1", "services", "Service"};
  return type;
}

const ResourceType& PodAutoscalerType() {
  static const ResourceType type = {"autoscaling.internal.knative.dev", "v1alpha1",
                                    "podautoscalers", "PodAutoscaler"};
  return type;
}

KnativeBackend::KnativeBackend(KubeClient& kube, Runtime& runtime, Options options)
    : kube_(kube),
      runtime_(runtime),
      options_(std::move(options)),
      pods_(kube, runtime,
            InformerOptions{.type = PodType(),
                            .namespaces = options_.namespaces,
                            .label_selector = kJobUidLabel}) {
  pods_.SetHandler([this](const ObjectName& pod) { Index(pod); });
  pods_.Start();
}

void KnativeBackend::Index(const ObjectName& pod) {
  const std::shared_ptr<const Json> object = pods_.cache().Get(pod);
  const std::string job = object == nullptr ? "" : LabelText(*object, kJobUidLabel);
  const std::lock_guard lock(mutex_);
  const auto known = job_of_pod_.find(pod);
  if (known != job_of_pod_.end()) {
    if (known->second == job) return;
    const auto of_job = pods_of_job_.find(known->second);
    of_job->second.erase(pod);
    if (of_job->second.empty()) pods_of_job_.erase(of_job);
    job_of_pod_.erase(known);
  }
  if (object == nullptr) return;
  pods_of_job_[job].insert(pod);
  job_of_pod_[pod] = job;
}

Status KnativeBackend::CheckSynced() const {
  if (pods_.synced()) return OkStatus();
  const std::string why = pods_.Problem().value_or("");
  return UnavailableError("the pods of functions are not listed yet" +
                          (why.empty() ? "" : ": " + why));
}

KnativeBackend::Pods KnativeBackend::PodsOf(const std::string& job_uid,
                                            const std::string& group) const {
  std::set<ObjectName> names;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pods_of_job_.find(job_uid);
    if (found != pods_of_job_.end()) names = found->second;
  }
  Pods pods;
  for (const ObjectName& name : names) {
    std::shared_ptr<const Json> pod = pods_.cache().Get(name);
    if (pod == nullptr) continue;
    if (group.empty() || LabelText(*pod, kGroupLabel) == group) pods.push_back(std::move(pod));
  }
  return pods;
}

std::shared_ptr<const Json> KnativeBackend::PodOf(const std::string& job_uid,
                                                  const std::string& uid) const {
  for (const std::shared_ptr<const Json>& pod : PodsOf(job_uid, "")) {
    if (UidOf(*pod) == PodUidOf(uid)) return pod;
  }
  return nullptr;
}

Status KnativeBackend::CreateService(const FunctionGroup& group) {
  LDNN_ASSIGN_OR_RETURN(const Json service, KnativeService(group, options_.services));
  const Status secret = kube_.Create(SecretType(), EnvironmentSecret(group)).status();
  if (!secret.ok() && secret.code() != StatusCode::kAlreadyExists) return secret;
  const Status created = kube_.Create(KnativeServiceType(), service).status();
  // An earlier attempt whose answer was lost.
  if (created.code() == StatusCode::kAlreadyExists) return OkStatus();
  return created;
}

Status KnativeBackend::Rescale(const Json& service, int count) {
  const Json* status = FindPath(service, {"status"});
  const std::string revision =
      status == nullptr ? "" : TextField(*status, "latestCreatedRevisionName");
  if (revision.empty()) return UnavailableError("the Service has no revision yet");
  const std::string scale = std::to_string(count);
  const Json annotations = {{kMinScale, scale}, {kMaxScale, scale}};
  return kube_
      .Patch(PodAutoscalerType(), {NameOf(service).namespace_name, revision},
             {{"metadata", {{"annotations", annotations}}}}, Subresource::kNone)
      .status();
}

bool KnativeBackend::SeenRight(const FunctionGroup& group) {
  const std::lock_guard lock(mutex_);
  const auto seen = checked_.find(KeyOf(group));
  return seen != checked_.end() && seen->second.count == group.count &&
         runtime_.clock.Now() - seen->second.at < FromSeconds(options_.service_seconds);
}

Status KnativeBackend::EnsureGroup(const FunctionGroup& group) {
  if (group.count == 0) return DeleteGroup(group.job_uid, group.name);
  LDNN_RETURN_IF_ERROR(CheckSynced());
  for (const std::shared_ptr<const Json>& pod : PodsOf(group.job_uid, group.name)) {
    if (IsCrashLooping(*pod) && !IsBeingDeleted(*pod)) LDNN_RETURN_IF_ERROR(DeletePod(*pod));
  }
  if (SeenRight(group)) return OkStatus();
  LDNN_RETURN_IF_ERROR(CheckService(group));
  const std::lock_guard lock(mutex_);
  checked_[KeyOf(group)] = {group.count, runtime_.clock.Now()};
  return OkStatus();
}

Status KnativeBackend::CheckService(const FunctionGroup& group) {
  const ObjectName name{group.namespace_name, KnativeServiceName(group)};
  const Result<Json> service = kube_.Get(KnativeServiceType(), name);
  if (service.status().code() == StatusCode::kNotFound) return CreateService(group);
  LDNN_RETURN_IF_ERROR(service.status());
  if (LabelText(*service, kJobUidLabel) != group.job_uid) {
    return UnavailableError("Service " + name.name +
                            " is of another job of the same name, which is being deleted");
  }
  if (IsBeingDeleted(*service)) {
    return UnavailableError("Service " + name.name + " is being deleted");
  }
  return ScaleOf(*service) == std::to_string(group.count) ? OkStatus()
                                                          : Rescale(*service, group.count);
}

Status KnativeBackend::DeletePod(const Json& pod) {
  const Status deleted =
      kube_.DeleteWithin(PodType(), NameOf(pod), UidOf(pod), options_.grace_seconds);
  return Ignorable(deleted) ? OkStatus() : deleted;
}

Status KnativeBackend::DeleteGroup(const std::string& job_uid, const std::string& group) {
  {
    const std::lock_guard lock(mutex_);
    checked_.clear();  // looking again costs a request
  }
  const std::string selector = GroupSelector(job_uid, group);
  std::vector<std::string> places = options_.namespaces;
  if (places.empty()) places.emplace_back();
  for (const std::string& place : places) {
    LDNN_ASSIGN_OR_RETURN(const KubeList services,
                          kube_.List(KnativeServiceType(), place, selector, kPageSize, ""));
    for (const Json& service : services.items) {
      const ObjectName name = NameOf(service);
      const Status deleted = kube_.Delete(KnativeServiceType(), name, UidOf(service));
      if (!Ignorable(deleted)) return deleted;
      const Status secret = kube_.Delete(SecretType(), name, "");
      if (!Ignorable(secret)) return secret;
    }
  }
  // The pods end with their Service, only late; one deleted before that would come again.
  for (const std::shared_ptr<const Json>& pod : PodsOf(job_uid, group)) {
    if (EndsLater(*pod, options_.grace_seconds)) LDNN_RETURN_IF_ERROR(DeletePod(*pod));
  }
  return OkStatus();
}

Status KnativeBackend::DeleteInstance(const std::string& job_uid, const std::string& uid) {
  LDNN_RETURN_IF_ERROR(CheckSynced());
  const std::shared_ptr<const Json> pod = PodOf(job_uid, uid);
  if (pod == nullptr || IsBeingDeleted(*pod)) return OkStatus();
  // The container's next life is another instance, which nobody asked to end.
  if (InstancesOf(*pod).back().uid != uid) return OkStatus();
  return DeletePod(*pod);
}

Result<std::vector<FunctionInstance>> KnativeBackend::List(const std::string& job_uid) {
  LDNN_RETURN_IF_ERROR(CheckSynced());
  std::vector<FunctionInstance> instances;
  for (const std::shared_ptr<const Json>& pod : PodsOf(job_uid, "")) {
    for (FunctionInstance& instance : InstancesOf(*pod)) instances.push_back(std::move(instance));
  }
  return instances;
}

Status KnativeBackend::SetCpu(const std::string&, const std::string&, int) {
  return UnimplementedError("the CPU quota of a pod cannot change while it runs");
}

Result<std::string> KnativeBackend::Logs(const std::string& job_uid, const std::string& uid,
                                         int last_lines) {
  LDNN_RETURN_IF_ERROR(CheckSynced());
  const std::shared_ptr<const Json> pod = PodOf(job_uid, uid);
  if (pod == nullptr) return NotFoundError("function " + uid + " has no pod any more");
  return kube_.PodLog(NameOf(*pod), kFunctionContainer, last_lines);
}

Result<FunctionCapacity> KnativeBackend::Capacity() {
  const Instant now = runtime_.clock.Now();
  {
    const std::lock_guard lock(mutex_);
    const bool fresh = now - capacity_at_ < FromSeconds(options_.capacity_seconds);
    if (capacity_.has_value() && fresh) return *capacity_;
  }
  // Nobody else waits while the API server is asked.
  const Result<KubeList> nodes = kube_.List(NodeType(), "", "", kPageSize, "");
  FunctionCapacity found;
  if (nodes.ok()) {
    for (const Json& node : nodes->items) found.memory_mib += SchedulableMemoryMib(node);
  } else if (nodes.status().code() != StatusCode::kPermissionDenied) {
    return nodes.status();
  }
  const std::lock_guard lock(mutex_);
  capacity_ = found;
  capacity_at_ = now;
  return found;
}

}  // namespace lambdadnn
