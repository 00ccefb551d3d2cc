// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/service_writer.h"

#include <algorithm>
#include <optional>

#include "common/base/text.h"
#include "operator/backends/knative/knative_types.h"
#include "operator/backends/knative/service_refusal.h"
#include "operator/backends/knative/service_scale.h"
#include "operator/backends/kubernetes/owned_object.h"
#include "operator/kube/list_all.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

bool IsMember(const Json& object, const std::optional<int>& member) {
  return LabelText(object, kMemberLabel) == (member.has_value() ? std::to_string(*member) : "");
}

Status NotOfJob(const char* kind, const ObjectName& name, const FunctionGroup& group) {
  return FailedPreconditionError(std::string(kind) + " " + name.name + " of namespace " +
                                 name.namespace_name + " is not of job " + group.job_name +
                                 ", which needs the name, and is left as it is; rename it, or give "
                                 "the job another name");
}

std::string KeyOf(const FunctionGroup& group) { return group.job_uid + "/" + group.name; }

bool IsDone(const Status& deleted) {
  return deleted.ok() || deleted.code() == StatusCode::kNotFound;
}

}  // namespace

bool ServiceWriter::SeenRight(const FunctionGroup& group) const {
  const std::lock_guard lock(mutex_);
  const auto seen = seen_.find(KeyOf(group));
  return seen != seen_.end() && seen->second.count == group.count &&
         runtime_.clock.Now() - seen->second.at < FromSeconds(options_.seen_seconds);
}

Status ServiceWriter::Ensure(const FunctionGroup& group, const PodIdentity& identity) {
  const std::vector<FunctionGroup> services = ServicesOf(group);
  for (const FunctionGroup& each : services) LDNN_RETURN_IF_ERROR(EnsureService(each, identity));
  if (services.front().member.has_value()) {
    LDNN_RETURN_IF_ERROR(DeleteFrom(JobOf(group), group.name, group.count));
  }
  const std::lock_guard lock(mutex_);
  seen_[KeyOf(group)] = {group.count, runtime_.clock.Now()};
  return OkStatus();
}

Status ServiceWriter::EnsureService(const FunctionGroup& group, const PodIdentity& identity) {
  const ObjectName name{group.namespace_name, KnativeServiceName(group)};
  const Result<Json> service = kube_.Get(KnativeServiceType(), name);
  if (service.status().code() == StatusCode::kNotFound) return CreateService(group, identity);
  LDNN_RETURN_IF_ERROR(service.status());
  LDNN_ASSIGN_OR_RETURN(
      const bool is_left_over,
      DeleteOfEarlierJob(kube_, KnativeServiceType(), *service, group.job_name, group.job_uid));
  if (is_left_over) {
    return UnavailableError("Service " + name.name +
                            " is of another job of the same name, which is gone, and is deleted");
  }
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
  // Its message is about the last refused pod: it is stale once all pods exist.
  const PodIndex::Pods pods = pods_.PodsOf(JobOf(group), group.name);
  const auto there = std::count_if(pods.begin(), pods.end(),
                                   [&](const auto& pod) { return IsMember(*pod, group.member); });
  if (there < group.count) {
    LDNN_RETURN_IF_ERROR(RefusalOfPods(*service));
  }
  return EnsureScale(kube_, *service, group,
                     [&] { return limits_.Limits(group.namespace_name, group.pods); });
}

// A quota on limits of CPU refuses pods of which a container has none; without such a quota none is
// best.
KnativeOptions ServiceWriter::OptionsIn(const FunctionGroup& group) const {
  KnativeOptions services = options_.services;
  const Result<ClusterLimits> limits = limits_.Limits(group.namespace_name, group.pods);
  if (limits.ok() && limits->quota.limits_cpu) {
    services.queue_proxy_milli_cpu_limit = kQueueProxyMilliCpuLimit;
  }
  return services;
}

Status ServiceWriter::CreateService(const FunctionGroup& group, const PodIdentity& identity) {
  LDNN_RETURN_IF_ERROR(CheckScale(limits_.Limits(group.namespace_name, group.pods), group));
  KnativeOptions services = OptionsIn(group);
  services.pull_secrets = identity.pull_secrets;
  LDNN_ASSIGN_OR_RETURN(const Json service, KnativeService(group, services, identity.account));
  LDNN_RETURN_IF_ERROR(CreateSecret(group));
  const Status created = kube_.Create(KnativeServiceType(), service).status();
  // An earlier attempt whose answer was lost.
  if (created.code() == StatusCode::kAlreadyExists) return OkStatus();
  return created;
}

// Without its Service a Secret of this name is of an earlier attempt, or of an earlier group or
// job, and may hold other keys; or it is a user's.
Status ServiceWriter::CreateSecret(const FunctionGroup& group) {
  const Json secret = EnvironmentSecret(group);
  const Status created = kube_.Create(SecretType(), secret).status();
  if (created.code() != StatusCode::kAlreadyExists) return created;
  const Result<Json> there = kube_.Get(SecretType(), NameOf(secret));
  if (there.ok() && !IsOwnedByJobNamed(*there, group.job_name) &&
      !IsOfEarlierJob(*there, group.job_name, group.job_uid)) {
    return NotOfJob("Secret", NameOf(secret), group);
  }
  if (there.ok()) {
    const Status deleted = kube_.Delete(SecretType(), NameOf(secret), UidOf(*there));
    if (!IsDone(deleted)) return deleted;
  } else if (!IsDone(there.status())) {
    return there.status();
  }
  return kube_.Create(SecretType(), secret).status();
}

void ServiceWriter::LookAgain() {
  const std::lock_guard lock(mutex_);
  seen_.clear();
}

Status ServiceWriter::Delete(const JobIdentity& job, const std::string& group) {
  return DeleteFrom(job, group, 0);
}

Status ServiceWriter::DeleteFrom(const JobIdentity& job, const std::string& group,
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
    if (!IsDone(deleted)) return deleted;
    LDNN_RETURN_IF_ERROR(DeleteOwned(kube_, SecretType(), name, job.uid));
  }
  return OkStatus();
}

}  // namespace lambdadnn
