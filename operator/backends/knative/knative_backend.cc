// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/knative_backend.h"

#include <algorithm>
#include <iterator>

#include "common/base/text.h"
#include "common/json/json_path.h"
#include "operator/backends/knative/pod_instances.h"
#include "operator/backends/knative/service_refusal.h"
#include "operator/backends/last_line.h"
#include "operator/backends/owned_object.h"
#include "operator/cluster_view/knative_config.h"
#include "operator/kube/list_all.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

constexpr const char* kNoRoute =
    "RouteNotReady: Knative has no route to the function's Service yet";
// Enough for a last one that is not empty.
constexpr int kLastLines = 20;
// A look at a job does not take longer for the last words of its functions.
constexpr Duration kLongestForLastLines = std::chrono::seconds(1);
constexpr const char* kNodeLost =
    "NodeLost: the pod was deleted, and its node has not confirmed its end";

// What Knative made of the Service last; "" = nothing yet.
std::string RevisionOf(const Json& service) {
  const Json* status = FindPath(service, {"status"});
  return status == nullptr ? "" : TextField(*status, "latestCreatedRevisionName");
}

std::string ScaleIn(const Json* annotations) {
  return annotations == nullptr ? "" : TextField(*annotations, kMinScaleAnnotation);
}

bool IsMember(const Json& object, const std::optional<int>& member) {
  return LabelText(object, kMemberLabel) == (member.has_value() ? std::to_string(*member) : "");
}

bool HasRoute(const Json& service) {
  const Json* conditions = FindPath(service, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return false;
  const Json* traffic = FindPath(service, {"status", "traffic"});
  const bool had_one = traffic != nullptr && traffic->is_array() && !traffic->empty();
  return std::any_of(conditions->begin(), conditions->end(), [&](const Json& condition) {
    if (TextField(condition, "type") != "RoutesReady") return false;
    // A revision whose container has ended once counts as failed from then on (Knative 1.15), when
    // the next life is ready, too; requests take the way that they took before.
    return TextField(condition, "status") == "True" ||
           (had_one && TextField(condition, "status") == "False");
  });
}

// Pods of Knative have one; what somebody made by hand has none.
bool HasController(const Json& pod) {
  const Json* owners = FindPath(pod, {"metadata", "ownerReferences"});
  return owners != nullptr && owners->is_array() &&
         std::any_of(owners->begin(), owners->end(),
                     [](const Json& owner) { return IsTrueAt(owner, {"controller"}); });
}

Status NotOfJob(const char* kind, const ObjectName& name, const FunctionGroup& group) {
  return FailedPreconditionError(std::string(kind) + " " + name.name + " of namespace " +
                                 name.namespace_name + " is not of job " + group.job_name +
                                 ", which needs the name, and is left as it is; rename it, or give "
                                 "the job another name");
}

std::string KeyOf(const FunctionGroup& group) { return group.job_uid + "/" + group.name; }

bool Ignorable(const Status& status) {
  return status.ok() || status.code() == StatusCode::kNotFound;
}

bool Says(const Status& status, const char* words) {
  return status.message().find(words) != std::string::npos;
}

// The server serves no such kind; a namespace that is gone is named.
bool IsWithoutKnative(const Status& answer) {
  return answer.code() == StatusCode::kNotFound && !Says(answer, "namespaces");
}

// The cluster would not take it, now or later.
bool IsRefusal(const Status& answer) {
  if (Says(answer, "exceeded quota") || Says(answer, "does not support dry run")) return false;
  // What the operator itself may not do, and a namespace that ends, are no matter of the object.
  if (Says(answer, "cannot create resource") || Says(answer, "being terminated")) return false;
  return answer.code() == StatusCode::kInvalidArgument ||
         answer.code() == StatusCode::kPermissionDenied || IsWithoutKnative(answer);
}

bool IsTransient(const Status& answer) {
  return answer.code() == StatusCode::kUnavailable ||
         answer.code() == StatusCode::kDeadlineExceeded || answer.code() == StatusCode::kAborted;
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
      reader_(kube, runtime,
              {.namespaces = options_.namespaces,
               .sidecar = SidecarOf(options_.services),
               .fresh_seconds = options_.limits_seconds}),
      isolation_(kube, runtime,
                 {.network = options_.network,
                  .namespaces = options_.namespaces,
                  .pull_secrets = options_.pull_secrets,
                  .record_event = options_.record_event,
                  .seen_seconds = options_.service_seconds}),
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
  const Instant now = runtime_.clock.Now();
  const std::lock_guard lock(mutex_);
  if (object == nullptr) ends_.erase(pod);
  if (object != nullptr && IsBeingDeleted(*object)) {
    deleted_since_.try_emplace(pod, now);
  } else {
    deleted_since_.erase(pod);
  }
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

KnativeBackend::Pods KnativeBackend::PodsOf(const JobIdentity& job,
                                            const std::string& group) const {
  std::set<ObjectName> names;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pods_of_job_.find(job.uid);
    if (found != pods_of_job_.end()) names = found->second;
  }
  Pods pods;
  for (const ObjectName& name : names) {
    // Whoever makes pods in another namespace may give them any label.
    if (name.namespace_name != job.namespace_name) continue;
    std::shared_ptr<const Json> pod = pods_.cache().Get(name);
    if (pod == nullptr || !HasController(*pod)) continue;
    if (group.empty() || LabelText(*pod, kGroupLabel) == group) pods.push_back(std::move(pod));
  }
  return pods;
}

std::shared_ptr<const Json> KnativeBackend::PodOf(const JobIdentity& job,
                                                  const std::string& uid) const {
  for (const std::shared_ptr<const Json>& pod : PodsOf(job, "")) {
    if (UidOf(*pod) == PodUidOf(uid)) return pod;
  }
  return nullptr;
}

// Without its Service a Secret of this name is of an earlier attempt, or of an earlier group or
// job, and may hold other keys; or it is a user's.
Status KnativeBackend::CreateSecret(const FunctionGroup& group) {
  const Json secret = EnvironmentSecret(group);
  const Status created = kube_.Create(SecretType(), secret).status();
  if (created.code() != StatusCode::kAlreadyExists) return created;
  const Result<Json> there = kube_.Get(SecretType(), NameOf(secret));
  if (there.ok() && !IsOwnedByJobNamed(*there, group.job_name)) {
    return NotOfJob("Secret", NameOf(secret), group);
  }
  if (there.ok()) {
    const Status deleted = kube_.Delete(SecretType(), NameOf(secret), UidOf(*there));
    if (!Ignorable(deleted)) return deleted;
  } else if (!Ignorable(there.status())) {
    return there.status();
  }
  return kube_.Create(SecretType(), secret).status();
}

// A quota on limits of CPU refuses pods of which a container has none; without such a quota none is
// best.
KnativeOptions KnativeBackend::OptionsIn(const FunctionGroup& group) {
  KnativeOptions services = options_.services;
  const Result<ClusterLimits> limits = reader_.Limits(group.namespace_name, group.runtime);
  if (limits.ok() && limits->quota.limits_cpu) {
    services.queue_proxy_milli_cpu_limit = kQueueProxyMilliCpuLimit;
  }
  return services;
}

Status KnativeBackend::CheckScale(const FunctionGroup& group) {
  const Result<ClusterLimits> limits = reader_.Limits(group.namespace_name, group.runtime);
  // Knative itself refuses what cannot be foreseen.
  if (!limits.ok() || limits->max_scale == 0 || group.count <= limits->max_scale) {
    return OkStatus();
  }
  return FailedPreconditionError(
      "group " + group.name + " has " + std::to_string(group.count) + " functions, and " +
      ScaleLimitText(limits->max_scale, group.count) + ", or lower spec.functions");
}

Status KnativeBackend::CreateService(const FunctionGroup& group, const PodIdentity& identity) {
  LDNN_RETURN_IF_ERROR(CheckScale(group));
  KnativeOptions services = OptionsIn(group);
  services.pull_secrets = identity.pull_secrets;
  LDNN_ASSIGN_OR_RETURN(const Json service, KnativeService(group, services, identity.account));
  LDNN_RETURN_IF_ERROR(CreateSecret(group));
  const Status created = kube_.Create(KnativeServiceType(), service).status();
  // An earlier attempt whose answer was lost.
  if (created.code() == StatusCode::kAlreadyExists) return OkStatus();
  return created;
}

// The Service says how it was made; the PodAutoscaler, once there is one, how many pods there are.
Status KnativeBackend::EnsureScale(const Json& service, const FunctionGroup& group) {
  const std::string scale = std::to_string(group.count);
  const ObjectName name{NameOf(service).namespace_name, RevisionOf(service)};
  const Result<Json> autoscaler = name.name.empty()
                                      ? NotFoundError("the Service has no revision yet")
                                      : kube_.Get(PodAutoscalerType(), name);
  if (autoscaler.status().code() == StatusCode::kNotFound) {
    const Json* made = FindPath(service, {"spec", "template", "metadata", "annotations"});
    return ScaleIn(made) == scale ? OkStatus() : UnavailableError(autoscaler.status().message());
  }
  LDNN_RETURN_IF_ERROR(autoscaler.status());
  if (ScaleIn(FindPath(*autoscaler, {"metadata", "annotations"})) == scale) return OkStatus();
  LDNN_RETURN_IF_ERROR(CheckScale(group));
  // The initial scale holds until so many pods were ready once: one that is larger than the others
  // would be kept.
  const Json annotations = {
      {kMinScaleAnnotation, scale}, {kMaxScaleAnnotation, scale}, {kInitialScaleAnnotation, scale}};
  return kube_
      .Patch(PodAutoscalerType(), name, {{"metadata", {{"annotations", annotations}}}},
             Subresource::kNone)
      .status();
}

bool KnativeBackend::SeenRight(const FunctionGroup& group) {
  const std::lock_guard lock(mutex_);
  const auto seen = checked_.find(KeyOf(group));
  return seen != checked_.end() && seen->second.count == group.count &&
         runtime_.clock.Now() - seen->second.at < FromSeconds(options_.service_seconds);
}

Status KnativeBackend::EnsureGroup(const FunctionGroup& group) {
  const JobIdentity job = JobOf(group);
  if (group.count == 0) return DeleteGroup(job, group.name);
  LDNN_RETURN_IF_ERROR(CheckSynced());
  for (const std::shared_ptr<const Json>& pod : PodsOf(job, group.name)) {
    if (IsCrashLooping(*pod) && !IsBeingDeleted(*pod)) LDNN_RETURN_IF_ERROR(DeletePod(*pod));
  }
  if (SeenRight(group)) return OkStatus();
  // Before the first pod, and again for those that come later.
  LDNN_ASSIGN_OR_RETURN(const PodIdentity identity, isolation_.Ensure(group));
  const std::vector<FunctionGroup> services = ServicesOf(group);
  for (const FunctionGroup& each : services) LDNN_RETURN_IF_ERROR(CheckService(each, identity));
  if (services.front().member.has_value()) {
    LDNN_RETURN_IF_ERROR(DeleteServices(job, group.name, group.count));
  }
  const std::lock_guard lock(mutex_);
  checked_[KeyOf(group)] = {group.count, runtime_.clock.Now()};
  return OkStatus();
}

Status KnativeBackend::CheckService(const FunctionGroup& group, const PodIdentity& identity) {
  const ObjectName name{group.namespace_name, KnativeServiceName(group)};
  const Result<Json> service = kube_.Get(KnativeServiceType(), name);
  if (service.status().code() == StatusCode::kNotFound) return CreateService(group, identity);
  LDNN_RETURN_IF_ERROR(service.status());
  if (!IsOwnedByJobNamed(*service, group.job_name)) {
    return NotOfJob("Service", name, group);
  }
  if (!IsOwnedByJob(*service, group.job_uid)) {
    return UnavailableError("Service " + name.name +
                            " is of another job of the same name, which is being deleted");
  }
  if (IsBeingDeleted(*service)) {
    return UnavailableError("Service " + name.name + " is being deleted");
  }
  // What it says of pods is of the last that was refused: with all of them there it is old.
  const Pods pods = PodsOf(JobOf(group), group.name);
  const auto there = std::count_if(pods.begin(), pods.end(),
                                   [&](const auto& pod) { return IsMember(*pod, group.member); });
  if (there < group.count) {
    LDNN_RETURN_IF_ERROR(RefusalOfPods(*service));
  }
  return EnsureScale(*service, group);
}

Status KnativeBackend::DeletePod(const Json& pod) {
  const Status deleted =
      kube_.DeleteWithin(PodType(), NameOf(pod), UidOf(pod), options_.grace_seconds);
  return Ignorable(deleted) ? OkStatus() : deleted;
}

Status KnativeBackend::DeleteServices(const JobIdentity& job, const std::string& group,
                                      int64_t first_member) {
  LDNN_ASSIGN_OR_RETURN(
      const KubeList services,
      ListAll(kube_, KnativeServiceType(), job.namespace_name, GroupSelector(job.uid, group)));
  for (const Json& service : services.items) {
    const std::optional<long long> member = ParseInteger(LabelText(service, kMemberLabel));
    if (member.has_value() && *member < first_member) continue;
    if (!IsOwnedByJob(service, job.uid)) continue;
    const ObjectName name = NameOf(service);
    const Status deleted = kube_.Delete(KnativeServiceType(), name, UidOf(service));
    if (!Ignorable(deleted)) return deleted;
    LDNN_RETURN_IF_ERROR(DeleteOwned(kube_, SecretType(), name, job.uid));
  }
  return OkStatus();
}

// Before their Service goes, whose end would give them Knative's 30 s to drain, which a kubelet
// does not cut short once they have begun. Without their account no other pods come in their place.
Status KnativeBackend::EndPods(const JobIdentity& job, const std::string& group) {
  bool withdrawn = false;
  for (const std::shared_ptr<const Json>& pod : PodsOf(job, group)) {
    if (IsBeingDeleted(*pod)) continue;
    if (!withdrawn) {
      LDNN_ASSIGN_OR_RETURN(withdrawn, isolation_.WithdrawAccount(AccountOf(*pod), job.uid));
      if (!withdrawn) return OkStatus();
    }
    LDNN_RETURN_IF_ERROR(DeletePod(*pod));
  }
  return OkStatus();
}

Status KnativeBackend::DeleteGroup(const JobIdentity& job, const std::string& group) {
  {
    const std::lock_guard lock(mutex_);
    checked_.clear();  // looking again costs a request
  }
  LDNN_RETURN_IF_ERROR(EndPods(job, group));
  LDNN_RETURN_IF_ERROR(DeleteServices(job, group, 0));
  // Others end with their Service, only late.
  for (const std::shared_ptr<const Json>& pod : PodsOf(job, group)) {
    if (EndsLater(*pod, options_.grace_seconds)) LDNN_RETURN_IF_ERROR(DeletePod(*pod));
  }
  return OkStatus();
}

Status KnativeBackend::DeleteInstance(const JobIdentity& job, const std::string& uid) {
  LDNN_RETURN_IF_ERROR(CheckSynced());
  const std::shared_ptr<const Json> pod = PodOf(job, uid);
  if (pod == nullptr || IsBeingDeleted(*pod)) return OkStatus();
  // The container's next life is another instance, which nobody asked to end.
  if (InstancesOf(*pod).back().uid != uid) return OkStatus();
  return DeletePod(*pod);
}

Status KnativeBackend::ReleaseJob(const JobIdentity& job) {
  return isolation_.Release(job.namespace_name, job.name, job.uid);
}

// Only the kubelet ends a pod's deletion, which that of a lost node never does.
bool KnativeBackend::IsOverdue(const Json& pod) const {
  const std::lock_guard lock(mutex_);
  const auto seen = deleted_since_.find(NameOf(pod));
  if (seen == deleted_since_.end() || !IsBeingDeleted(pod)) return false;
  const Duration limit =
      FromSeconds(static_cast<double>(DeletionGraceSeconds(pod)) + options_.lost_node_seconds);
  return runtime_.clock.Now() - seen->second > limit;
}

bool KnativeBackend::IsRouted(const Json& pod) {
  if (!IsReachedByService(pod)) return true;
  const std::lock_guard lock(mutex_);
  if (services_ == nullptr) {
    services_ = std::make_unique<Informer>(kube_, runtime_,
                                           InformerOptions{.type = KnativeServiceType(),
                                                           .namespaces = options_.namespaces,
                                                           .label_selector = kMemberLabel});
    services_->Start();
  }
  const std::shared_ptr<const Json> service =
      services_->cache().Get({NameOf(pod).namespace_name, LabelText(pod, kServiceLabel)});
  return service != nullptr && HasRoute(*service);
}

Result<std::vector<FunctionInstance>> KnativeBackend::List(const JobIdentity& job) {
  LDNN_RETURN_IF_ERROR(CheckSynced());
  isolation_.Keep(job.uid);
  std::vector<FunctionInstance> instances;
  const Instant now = runtime_.clock.Now();
  const WallTime wall = runtime_.clock.Wall();
  bool more = true;
  for (const std::shared_ptr<const Json>& pod : PodsOf(job, "")) {
    std::vector<FunctionInstance> lives = InstancesOf(*pod);
    TellAges(*pod, wall, &lives);
    AddEnds(*pod, now, &more, &lives);
    if (!lives.empty() && IsOverdue(*pod)) {
      lives.back().phase = FunctionPhase::kGone;
      lives.back().reason = kNodeLost;
      lives.back().end = FunctionEnd::kByPlatform;
      lives.back().age_seconds = 0;  // nobody knows when it ended
    }
    if (!lives.empty() && lives.back().phase == FunctionPhase::kReady && !IsRouted(*pod)) {
      lives.back().phase = FunctionPhase::kPending;
      lives.back().reason = kNoRoute;
    }
    std::move(lives.begin(), lives.end(), std::back_inserter(instances));
  }
  return instances;
}

Status KnativeBackend::SetCpu(const JobIdentity&, const std::string&, int) {
  return UnimplementedError("the CPU quota of a pod cannot change while it runs");
}

Result<std::string> KnativeBackend::Logs(const JobIdentity& job, const std::string& uid,
                                         int last_lines) {
  LDNN_RETURN_IF_ERROR(CheckSynced());
  const std::shared_ptr<const Json> pod = PodOf(job, uid);
  if (pod == nullptr) return NotFoundError("function " + uid + " has no pod any more");
  return ReadLog(NameOf(*pod), uid, last_lines);
}

Result<std::string> KnativeBackend::ReadLog(const ObjectName& pod, const std::string& uid,
                                            int last_lines) {
  const auto life_now = [&] {
    const std::shared_ptr<const Json> object = pods_.cache().Get(pod);
    return object == nullptr ? std::nullopt : LogOf(*object, uid);
  };
  std::optional<ContainerLife> life = life_now();
  Result<std::string> log = NotFoundError("the log of function " + uid + " is not kept any more");
  while (life.has_value()) {
    log = kube_.PodLog(pod, kFunctionContainer, *life, last_lines);
    // The kubelet may have begun the next life meanwhile, and told that one's words.
    const std::optional<ContainerLife> after = life_now();
    if (*life == ContainerLife::kBefore || after != ContainerLife::kBefore) break;
    life = after;
  }
  return log;
}

void KnativeBackend::AddEnds(const Json& pod, Instant now, bool* more,
                             std::vector<FunctionInstance>* lives) {
  const ObjectName name = NameOf(pod);
  for (FunctionInstance& life : *lives) {
    if (life.phase != FunctionPhase::kGone) continue;
    bool ask = false;
    {
      const std::lock_guard lock(mutex_);
      if (!job_of_pod_.contains(name)) continue;  // it goes, and what is known of it
      const auto [end, is_new] = ends_[name].try_emplace(life.uid);
      if (is_new) end->second.seen = now;
      // Its node's clock may say that it is still to come.
      life.ended_seconds = std::max(life.ended_seconds, ToSeconds(now - end->second.seen));
      if (life.last_log_line.empty()) life.last_log_line = end->second.last_line;
      // Who is told of an end never looks at it again: what is not there now is not missed later.
      ask = is_new && *more && life.last_log_line.empty();
    }
    if (!ask) continue;
    const Result<std::string> log = ReadLog(name, life.uid, kLastLines);
    *more = !IsTransient(log.status()) && runtime_.clock.Now() - now < kLongestForLastLines;
    if (!log.ok()) continue;
    life.last_log_line = LastLineOf(*log);
    const std::lock_guard lock(mutex_);
    const auto known = ends_.find(name);
    if (known != ends_.end()) known->second[life.uid].last_line = life.last_log_line;
  }
}

Status KnativeBackend::Preflight(const FunctionGroup& group) {
  LDNN_ASSIGN_OR_RETURN(Json service, KnativeService(ServicesOf(group).front(), OptionsIn(group)));
  if (options_.try_create == nullptr) return OkStatus();
  service["metadata"]["annotations"]["features.knative.dev/podspec-dryrun"] = "enabled";
  const Status answer = options_.try_create(KnativeServiceType(), service).status();
  if (!IsRefusal(answer)) return Ignorable(answer) || !IsTransient(answer) ? OkStatus() : answer;
  return FailedPreconditionError("Knative does not take this job's functions: " + answer.message() +
                                 "; " + NextStepForRefusal(answer.message()));
}

Result<FunctionCapacity> KnativeBackend::Capacity() { return reader_.Capacity(); }

Result<ClusterLimits> KnativeBackend::Limits(const std::string& namespace_name,
                                             const Json& runtime) {
  return reader_.Limits(namespace_name, runtime);
}

}  // namespace lambdadnn
