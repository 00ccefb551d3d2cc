// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/job_isolation.h"

#include "common/json/json_path.h"
#include "operator/api/reason.h"
#include "operator/backends/kubernetes/owned_object.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_account.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

constexpr const char* kDefaultAccount = "default";

bool IsForbidden(const Status& status) { return status.code() == StatusCode::kPermissionDenied; }

Json SpecOf(const Json& object) { return object.value("spec", Json(Json::object())); }

Status NotOurs(const ResourceType& type, const ObjectName& name) {
  return UnavailableError(type.kind + " " + name.name + " in namespace " + name.namespace_name +
                          " is not of this job: of one before with its name, which is being "
                          "deleted, or belongs to another owner; delete it");
}

}  // namespace

const ResourceType& ServiceAccountType() {
  static const ResourceType type = {"", "v1", "serviceaccounts", "ServiceAccount"};
  return type;
}

const ResourceType& NetworkPolicyType() {
  static const ResourceType type = {"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"};
  return type;
}

JobIsolation::JobIsolation(KubeClient& kube, Runtime& runtime, Options options)
    : kube_(kube), runtime_(runtime), options_(std::move(options)) {
  if (!options_.network.has_value()) return;
  policies_.emplace(kube, runtime,
                    InformerOptions{.type = NetworkPolicyType(),
                                    .namespaces = options_.namespaces,
                                    .label_selector = kJobUidLabel});
  policies_->SetHandler([this](const ObjectName& policy) { Index(policy); });
  policies_->Start();
}

// For a job that an earlier leader started, the existing policy is the desired one; a deleted one
// stays desired for a while, until it is known whether its job is deleted as well.
void JobIsolation::Index(const ObjectName& policy) {
  const std::shared_ptr<const Json> object = policies_->cache().Get(policy);
  const Instant now = runtime_.clock.Now();
  const std::lock_guard lock(mutex_);
  if (object != nullptr) {
    const std::string job = LabelText(*object, kJobUidLabel);
    job_of_[policy] = job;
    Wanted& wanted = wanted_[job];
    if (wanted.policy.is_null() && !wanted.released) {
      wanted.policy = *object;
      wanted.policy["metadata"] = {
          {"name", policy.name},
          {"namespace", policy.namespace_name},
          {"labels", (*object)["metadata"]["labels"]},
          {"ownerReferences", (*object)["metadata"].value("ownerReferences", Json::array())}};
    }
    if (!wanted.released) wanted.gone_since.reset();
    return;
  }
  if (const auto known = job_of_.find(policy); known != job_of_.end()) {
    if (const auto job = wanted_.find(known->second); job != wanted_.end()) {
      if (!job->second.gone_since.has_value()) job->second.gone_since = now;
    }
    job_of_.erase(known);
  }
  std::erase_if(wanted_, [&](const auto& entry) {
    const auto& since = entry.second.gone_since;
    return since.has_value() && now - *since > FromSeconds(options_.forget_seconds);
  });
}

Result<PodIdentity> JobIsolation::Ensure(const FunctionGroup& group) {
  PodIdentity identity;
  identity.account = group.pods.service_account_name;
  Json account;
  if (identity.account.empty()) {
    LDNN_ASSIGN_OR_RETURN(account, EnsureAccount(group));
    if (account.is_object()) identity.account = NameOf(account).name;
  }
  if (!options_.pull_secrets.empty()) {
    const std::string runs_as = identity.account.empty() ? kDefaultAccount : identity.account;
    if (account.is_null()) {
      LDNN_ASSIGN_OR_RETURN(account, ReadAccount({group.namespace_name, runs_as}));
    }
    identity.pull_secrets = PullSecretsBeside(account, options_.pull_secrets);
  }
  if (options_.network.has_value()) {
    LDNN_RETURN_IF_ERROR(EnsurePolicy(group.job_uid, JobNetworkPolicy(group, *options_.network)));
  }
  return identity;
}

Status JobIsolation::MakeWay(const ResourceType& type, const Json& object,
                             const std::string& job_name, const std::string& job_uid) {
  if (!IsBeingDeleted(object)) {
    LDNN_RETURN_IF_ERROR(DeleteOfEarlierJob(kube_, type, object, job_name, job_uid).status());
  }
  return NotOurs(type, NameOf(object));
}

Result<Json> JobIsolation::ReadAccount(const ObjectName& name) {
  Result<Json> account = kube_.Get(ServiceAccountType(), name);
  const bool none = account.status().code() == StatusCode::kNotFound;
  if (none || IsForbidden(account.status())) return Json();
  return account;
}

Result<Json> JobIsolation::EnsureAccount(const FunctionGroup& group) {
  const ObjectName name{group.namespace_name, JobChildName(group.job_name)};
  Result<Json> account = kube_.Get(ServiceAccountType(), name);
  if (account.status().code() == StatusCode::kNotFound) {
    const Result<Json> usual =
        kube_.Get(ServiceAccountType(), {group.namespace_name, kDefaultAccount});
    std::vector<std::string> secrets;
    if (usual.ok()) secrets = PullSecretsIn(*usual);
    secrets.insert(secrets.end(), options_.pull_secrets.begin(), options_.pull_secrets.end());
    account = kube_.Create(ServiceAccountType(), JobAccount(group, secrets));
    // An earlier attempt whose answer was lost.
    if (account.status().code() == StatusCode::kAlreadyExists) {
      account = kube_.Get(ServiceAccountType(), name);
    }
  }
  if (IsForbidden(account.status())) {
    Tell({group.namespace_name, group.job_name}, group.job_uid,
         "its pods run as the namespace's default account, since its ServiceAccount could not be "
         "written",
         account.status());
    return Json();
  }
  LDNN_RETURN_IF_ERROR(account.status());
  if (!IsOfJob(*account, group.job_uid) || IsBeingDeleted(*account)) {
    return MakeWay(ServiceAccountType(), *account, group.job_name, group.job_uid);
  }
  return account;
}

std::shared_ptr<const Json> JobIsolation::Cached(const ObjectName& name) const {
  return policies_.has_value() && policies_->synced() ? policies_->cache().Get(name) : nullptr;
}

bool JobIsolation::IsRight(const Wanted& wanted, const Json* object) const {
  if (object == nullptr || IsBeingDeleted(*object)) return false;
  const Json spec = SpecOf(*object);
  return spec == SpecOf(wanted.policy) || spec == wanted.kept_spec;
}

Status JobIsolation::EnsurePolicy(const std::string& job_uid, const Json& policy) {
  const Instant now = runtime_.clock.Now();
  const std::shared_ptr<const Json> there = Cached(NameOf(policy));
  {
    const std::lock_guard lock(mutex_);
    Wanted& wanted = wanted_[job_uid];
    if (wanted.policy != policy) {
      wanted = Wanted{};
      wanted.policy = policy;
    }
    if (now < wanted.look_again) return OkStatus();
    if (there != nullptr && IsOfJob(*there, job_uid) && IsRight(wanted, there.get())) {
      return OkStatus();
    }
  }
  const Result<Json> kept = WritePolicy(job_uid, policy);
  if (!kept.ok() && !IsForbidden(kept.status())) return kept.status();
  {
    const std::lock_guard lock(mutex_);
    Wanted& wanted = wanted_[job_uid];
    wanted.policy = policy;
    if (kept.ok()) wanted.kept_spec = *kept;
    wanted.look_again =
        now + FromSeconds(kept.ok() ? options_.seen_seconds : options_.forbidden_seconds);
    wanted.gone_since.reset();
  }
  if (!kept.ok()) {
    const Json* name = FindPath(policy, {"metadata", "labels", kJobNameLabel});
    Tell({NameOf(policy).namespace_name, name == nullptr ? "" : name->get<std::string>()}, job_uid,
         "its pods accept and send all traffic, since its NetworkPolicy could not be written",
         kept.status());
  }
  return OkStatus();
}

Result<Json> JobIsolation::WritePolicy(const std::string& job_uid, const Json& policy) {
  const ObjectName name = NameOf(policy);
  Result<Json> there = kube_.Create(NetworkPolicyType(), policy);
  if (there.ok()) return SpecOf(*there);
  if (there.status().code() != StatusCode::kAlreadyExists) return there.status();
  there = kube_.Get(NetworkPolicyType(), name);
  LDNN_RETURN_IF_ERROR(there.status());
  if (!IsOfJob(*there, job_uid) || IsBeingDeleted(*there)) {
    return MakeWay(NetworkPolicyType(), *there, LabelText(policy, kJobNameLabel), job_uid);
  }
  if (SpecOf(*there) == SpecOf(policy)) return SpecOf(*there);
  Json next = *there;
  next["spec"] = policy["spec"];
  const Result<Json> written = kube_.Update(NetworkPolicyType(), next, Subresource::kNone);
  LDNN_RETURN_IF_ERROR(written.status());
  return SpecOf(*written);
}

void JobIsolation::Keep(const std::string& job_uid) {
  if (!policies_.has_value() || !policies_->synced()) return;
  Json policy;
  {
    const std::lock_guard lock(mutex_);
    const auto found = wanted_.find(job_uid);
    if (found == wanted_.end() || found->second.released) return;
    policy = found->second.policy;
  }
  // Tried again at the next call.
  static_cast<void>(EnsurePolicy(job_uid, policy));
}

Result<bool> JobIsolation::DeleteOurs(const ResourceType& type, const ObjectName& name,
                                      const std::string& job_uid) {
  const Result<Json> object = kube_.Get(type, name);
  if (object.status().code() == StatusCode::kNotFound) return true;
  if (IsForbidden(object.status())) return false;
  LDNN_RETURN_IF_ERROR(object.status());
  if (!IsOfJob(*object, job_uid)) return false;
  const Status deleted = kube_.Delete(type, name, UidOf(*object));
  if (deleted.ok() || deleted.code() == StatusCode::kNotFound) return true;
  if (IsForbidden(deleted)) return false;
  return deleted;
}

Result<bool> JobIsolation::WithdrawAccount(const ObjectName& name, const std::string& job_uid) {
  if (name.name.empty() || name.name == kDefaultAccount) return false;
  return DeleteOurs(ServiceAccountType(), name, job_uid);
}

Status JobIsolation::Release(const std::string& namespace_name, const std::string& job_name,
                             const std::string& job_uid) {
  const ObjectName name{namespace_name, JobChildName(job_name)};
  {
    const std::lock_guard lock(mutex_);
    // Remembered, since the watch may still report the policy.
    Wanted& released = wanted_[job_uid] = Wanted{};
    released.released = true;
    released.gone_since = runtime_.clock.Now();
    std::erase_if(told_, [&](const std::string& each) { return each.starts_with(job_uid); });
  }
  LDNN_RETURN_IF_ERROR(DeleteOurs(NetworkPolicyType(), name, job_uid).status());
  return DeleteOurs(ServiceAccountType(), name, job_uid).status();
}

void JobIsolation::Tell(const ObjectName& job, const std::string& job_uid, const std::string& what,
                        const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (!told_.insert(job_uid + " " + what).second) return;
  }
  if (options_.record_event == nullptr) return;
  options_.record_event({.regarding = JobReference(job.namespace_name, job.name, job_uid),
                         .warning = true,
                         .action = "Isolate",
                         .reason = ReasonText(Reason::kJobNotIsolated),
                         .note = what + ": " + status.message()});
}

}  // namespace lambdadnn
