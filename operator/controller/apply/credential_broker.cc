// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/apply/credential_broker.h"

#include <algorithm>
#include <cmath>

#include "common/protocol/object_keys.h"
#include "operator/controller/store/store_access.h"
#include "operator/controller/store/store_bulkheads.h"
#include "operator/resources/job_key.h"
#include "operator/resources/job_policy.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// Credentials outlive the slice by this: its start takes time, and the store's clock may differ.
constexpr double kMarginSeconds = 30;
// Leaked credentials should expire soon.
constexpr double kLongestSeconds = 12 * 3600;
// Credentials that expire sooner are refused.
constexpr double kLeastSeconds = 4 * kMarginSeconds;
// Where the store contradicts what it answered before.
constexpr int kAttempts = 3;

// Messages of stores may be long; the API's limit is 1,024.
constexpr size_t kMaxMessageCharacters = 800;

std::string Shortened(const std::string& text) {
  return text.size() <= kMaxMessageCharacters ? text : text.substr(0, kMaxMessageCharacters) + " …";
}

// The credentials allow what a job's functions do below its prefix, and do not even read beside it.
Status TryOut(ObjectStore& store, const std::string& prefix, const std::string& key) {
  const Result<ObjectInfo> beside = store.Head(prefix + "x/probe");
  if (!IsAccessFailure(beside.status())) {
    if (beside.status().code() == StatusCode::kUnavailable) return beside.status();
    return UnimplementedError("the store gives credentials that reach beyond their policy");
  }
  const Result<ObjectInfo> missing = store.Head(key);
  Status works = missing.status().code() == StatusCode::kNotFound ? OkStatus() : missing.status();
  if (works.ok()) works = store.Put(key, AsBytes("1"));
  if (works.ok()) works = GetBounded(store, key, 1, "a probe").status();
  if (works.ok()) works = store.List(prefix + "/", "", 1).status();
  if (works.ok()) works = store.Delete(key);
  return works.ok() ? works : works.WithContext("with the credentials that the store gave");
}

}  // namespace

bool CredentialBroker::HasOwn(const Pass& pass) {
  const std::string& decided = pass.memory->memo.store_credentials;
  const std::string& told = pass.snapshot.job.status.store_credentials;
  return (decided.empty() ? told : decided) == kPerJobCredentials;
}

bool CredentialBroker::HasSecret(const Job& job) const {
  return options_.use_store_secrets && !job.spec.object_store.credentials_secret.empty();
}

bool CredentialBroker::MayHaveOthers(const Job& job) const {
  return HasSecret(job) || !options_.tenants.has_value() ||
         options_.tenants->expose_operator_credentials;
}

bool CredentialBroker::IsChoiceKept(const Job& job) const {
  const std::string& told = job.status.store_credentials;
  if (told == kPerJobCredentials) return true;
  if (told == kSecretCredentials) return HasSecret(job);
  // Whoever may write status may have written it, or the operator has been told to be stricter.
  return (!told.empty() || IsStarted(job)) && MayHaveOthers(job);
}

void CredentialBroker::UseOthers(Pass* pass, const Status& why) {
  Memo& memo = pass->memory->memo;
  const Job& job = pass->snapshot.job;
  pass->memory->issued.reset();
  if (!MayHaveOthers(job)) {
    memo.credentials_refused = FailedPreconditionError(
        "no credentials for this job alone: " + Shortened(why.message()) +
        "; name a Secret of yours in spec.objectStore.credentialsSecretRef, or mend what the store "
        "lacks (the operator's own credentials are not given to jobs)");
    if (!memo.credentials_refused_since.has_value()) {
      memo.credentials_refused_since = dependencies_.runtime.clock.Now();
    }
    return;
  }
  memo.store_credentials = HasSecret(job) ? kSecretCredentials : kOperatorCredentials;
  memo.store_credentials_message = Shortened(why.message());
}

Status CredentialBroker::Issue(Pass* pass, double seconds) {
  JobMemory& memory = *pass->memory;
  LDNN_RETURN_IF_ERROR(stores_.Open(pass).status());  // what its Secrets say is known with it
  const Job& job = pass->snapshot.job;
  AssumedRole role;
  LDNN_ASSIGN_OR_RETURN(role.policy, JobStorePolicy(job, kMaxRolePolicyCharacters));
  role.session_name = "lambdadnn-" + job.metadata.uid;
  role.duration_seconds =
      static_cast<int>(std::clamp(std::ceil(seconds), double{kMinRoleSeconds}, kLongestSeconds));
  const auto ask = [&] {
    Result<TemporaryCredentials> given = UnavailableError("not asked");
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      given = dependencies_.assume_role(MakeStoreReference(job), memory.store_secrets, role);
      if (given.status().code() != StatusCode::kUnavailable) break;
    }
    return given;
  };
  const Instant asked = dependencies_.runtime.clock.Now();
  Result<TemporaryCredentials> given = ask();
  if (given.status().code() == StatusCode::kInvalidArgument &&
      role.duration_seconds > kMinRoleSeconds) {
    // So long is not for everybody; slices become shorter.
    role.duration_seconds = kMinRoleSeconds;
    given = ask();
  }
  LDNN_RETURN_IF_ERROR(given.status());
  if (given->lifetime_seconds < kLeastSeconds) {
    return FailedPreconditionError("the store gives credentials for " +
                                   std::to_string(static_cast<int64_t>(given->lifetime_seconds)) +
                                   " s only");
  }
  memory.issued = {std::move(given->credentials), asked + FromSeconds(given->lifetime_seconds),
                   given->lifetime_seconds, memory.store_secrets.version};
  memory.memo.credentials_refused = OkStatus();
  memory.memo.credentials_refused_since.reset();
  return OkStatus();
}

Status CredentialBroker::Try(Pass* pass) {
  LDNN_RETURN_IF_ERROR(Issue(pass, kMinRoleSeconds));
  JobMemory& memory = *pass->memory;
  StoreSecrets secrets = memory.store_secrets;
  secrets.credentials = memory.issued->credentials;
  const StoreReference reference = MakeStoreReference(pass->snapshot.job);
  LDNN_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> store,
                        dependencies_.open_store(reference, secrets));
  const std::string key =
      RecordsPrefix(reference.prefix) + "probe-role-" + std::to_string(options_.leader_epoch);
  return TryOut(*store, reference.prefix, key);
}

Result<bool> CredentialBroker::Choose(Pass* pass, bool may_try) {
  JobMemory& memory = *pass->memory;
  const Job& job = pass->snapshot.job;
  const StoreReference reference = MakeStoreReference(job);
  const bool chosen = !memory.memo.store_credentials.empty() || IsChoiceKept(job);
  const bool possible = dependencies_.assume_role != nullptr && reference.uri.starts_with("s3://");
  if (chosen || !possible) return true;
  const Result<std::string> policy = JobStorePolicy(job, kMaxRolePolicyCharacters);
  if (!policy.ok()) {
    UseOthers(pass, policy.status());
    return true;
  }

  const std::pair store(StoreBulkheadOf(job), memory.store_secrets.version);
  std::optional<Status> answer;
  {
    const std::lock_guard lock(mutex_);
    const auto found = roles_.find(store);
    if (found != roles_.end()) answer = found->second;
  }
  if (!answer.has_value() && !may_try) return false;
  if (!answer.has_value()) {
    answer = Try(pass);
    // A moment's trouble says nothing about the next job.
    if (answer->code() != StatusCode::kUnavailable) {
      const std::lock_guard lock(mutex_);
      roles_[store] = *answer;
    }
  }
  if (answer->ok()) {
    memory.memo.store_credentials = kPerJobCredentials;
    return true;
  }
  // A moment's trouble fails no job that has nothing else.
  const bool again = answer->code() == StatusCode::kUnavailable;
  if (again && !MayHaveOthers(job)) return *answer;
  UseOthers(pass, *answer);
  return true;
}

bool CredentialBroker::NeedsOther(const Pass& pass, double budget_seconds) const {
  if (!HasOwn(pass)) return false;
  const std::optional<IssuedCredentials>& issued = pass.memory->issued;
  if (!issued.has_value() || issued->of_version != pass.memory->store_secrets.version) return true;
  const double left = ToSeconds(issued->end - dependencies_.runtime.clock.Now());
  const double wanted = budget_seconds > 0 ? budget_seconds + kMarginSeconds : kLongestSeconds;
  // Where none last so long, half their life is.
  return left < std::min(wanted, issued->lifetime_seconds / 2);
}

Status CredentialBroker::AddTo(SliceRequest* request, Pass* pass) {
  if (!HasOwn(*pass)) return OkStatus();
  JobMemory& memory = *pass->memory;
  LDNN_RETURN_IF_ERROR(stores_.Open(pass).status());  // its Secrets may have changed
  const double budget = request->budget_seconds;
  if (NeedsOther(*pass, budget)) {
    const double wanted = budget > 0 ? budget + 2 * kMarginSeconds : kLongestSeconds;
    const Status issued = Issue(pass, wanted);
    const bool again =
        issued.code() == StatusCode::kUnavailable || issued.code() == StatusCode::kCancelled;
    if (again) return issued;
    if (!issued.ok()) {
      UseOthers(pass, issued);
      // Functions that have none are refused, and replaced by some that have the Secret's.
      return memory.memo.credentials_refused;
    }
  }
  const IssuedCredentials& issued = *memory.issued;
  const double left = ToSeconds(issued.end - dependencies_.runtime.clock.Now()) - kMarginSeconds;
  request->budget_seconds = budget > 0 ? std::min(budget, left) : left;
  request->credentials = issued.credentials;
  return OkStatus();
}

Status CredentialBroker::EnsureJobKey(Pass* pass) {
  JobMemory& memory = *pass->memory;
  if (!memory.job_key.empty()) return OkStatus();
  const Job& job = pass->snapshot.job;
  const ObjectName name{job.metadata.namespace_name, JobKeySecretName(job)};
  Result<Json> secret = NotFoundError("not asked for");
  // A job whose functions have never begun most likely has none.
  if (!job.status.execution.functions.empty()) secret = dependencies_.kube.Get(SecretType(), name);
  if (!secret.ok() && secret.status().code() == StatusCode::kNotFound) {
    const std::string key = MakeJobKey(dependencies_.runtime.random);
    secret = dependencies_.kube.Create(SecretType(), JobKeySecret(job, key));
    // Somebody was faster, or the answer to an earlier attempt was lost.
    if (!secret.ok()) secret = dependencies_.kube.Get(SecretType(), name);
  }
  if (!secret.ok()) {
    return secret.status().WithContext("cannot get the key of job " + job.metadata.name);
  }
  std::optional<std::string> key = KeyOfSecret(job, *secret);
  if (!key.has_value()) {
    return FailedPreconditionError("secret " + name.name +
                                   " is not the key of this job; delete it");
  }
  memory.job_key = *key;
  return OkStatus();
}

Result<FunctionSecrets> CredentialBroker::SecretsOf(Pass* pass) {
  LDNN_RETURN_IF_ERROR(EnsureJobKey(pass));
  LDNN_RETURN_IF_ERROR(stores_.Open(pass).status());  // what its Secrets say is known with it
  const StoreSecrets& secrets = pass->memory->store_secrets;
  auto environment = StoreEnvironment(dependencies_.store_environment, secrets);
  const ObjectStoreSpec& store = pass->snapshot.job.spec.object_store;
  if (!secrets.credentials.access_key.empty() && !store.endpoint.empty()) {
    // The user's credentials are for the user's service: data and models are read there as well.
    environment["LAMBDADNN_S3_ENDPOINT"] = store.endpoint;
    environment["LAMBDADNN_S3_REGION"] = store.region;
    environment["LAMBDADNN_S3_PATH_STYLE"] = store.path_style ? "true" : "false";
  }
  const bool own = HasOwn(*pass);
  if (own) environment = WithoutCredentials(std::move(environment));
  pass->memory->memo.secrets_version = pass->memory->StartedWith(own);
  return FunctionSecrets{pass->memory->job_key, std::move(environment)};
}

}  // namespace lambdadnn
