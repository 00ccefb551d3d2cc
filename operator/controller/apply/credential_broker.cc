// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/apply/credential_broker.h"

#include <algorithm>
#include <cmath>

#include "common/http/pinned_certificate.h"
#include "common/protocol/object_keys.h"
#include "operator/backends/kubernetes/owned_object.h"
#include "operator/controller/store/store_access.h"
#include "operator/controller/store/store_bulkheads.h"
#include "operator/resources/job_key.h"
#include "operator/resources/job_policy.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// When the store does not answer.
constexpr int kAttempts = 3;

// Functions then get a new one; those that have the old one are replaced.
constexpr const char* kDeleteKey = "delete it, and the job goes on with a new one";

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

CredentialSituation CredentialBroker::SituationOf(const Pass& pass) const {
  const Job& job = pass.snapshot.job;
  CredentialSituation situation;
  situation.can_issue =
      dependencies_.assume_role != nullptr && MakeStoreReference(job).uri.starts_with("s3://");
  situation.has_secret =
      options_.use_store_secrets && !job.spec.object_store.credentials_secret.empty();
  situation.may_use_operators =
      !options_.tenants.has_value() || options_.tenants->expose_operator_credentials;
  situation.started = IsStarted(job);
  situation.told = job.status.store_credentials;
  situation.chosen = pass.memory->memo.store_credentials;
  return situation;
}

void CredentialBroker::Use(const CredentialChoice& choice, Pass* pass) {
  Memo& memo = pass->memory->memo;
  switch (choice.step) {
    case CredentialStep::kPerJob:
      memo.store_credentials = kPerJobCredentials;
      return;
    case CredentialStep::kSecret:
    case CredentialStep::kOperator:
      pass->memory->issued.reset();
      memo.store_credentials =
          choice.step == CredentialStep::kSecret ? kSecretCredentials : kOperatorCredentials;
      memo.store_credentials_message = Shortened(choice.why.message());
      return;
    case CredentialStep::kRefuse:
      pass->memory->issued.reset();
      memo.credentials_refused = FailedPreconditionError(
          "no credentials for this job alone: " + Shortened(choice.why.message()) +
          "; name a Secret of yours in spec.objectStore.credentialsSecretRef, or mend what the "
          "store lacks (the operator's own credentials are not given to jobs)");
      if (!memo.credentials_refused_since.has_value()) {
        memo.credentials_refused_since = dependencies_.runtime.clock.Now();
      }
      return;
    case CredentialStep::kKeep:
    case CredentialStep::kAwaitAccept:
    case CredentialStep::kTryOut:
    case CredentialStep::kAskAgain:
      return;
  }
}

Status CredentialBroker::Issue(Pass* pass, double seconds) {
  JobMemory& memory = *pass->memory;
  LDNN_RETURN_IF_ERROR(stores_.Open(pass).status());  // what its Secrets say is known with it
  const Job& job = pass->snapshot.job;
  AssumedRole role;
  LDNN_ASSIGN_OR_RETURN(role.policy, JobStorePolicy(job, kMaxRolePolicyCharacters));
  role.session_name = "lambdadnn-" + job.metadata.uid;
  role.duration_seconds = static_cast<int>(std::ceil(seconds));
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
    // The role may not be assumed for so long; slices become shorter.
    role.duration_seconds = kMinRoleSeconds;
    given = ask();
  }
  LDNN_RETURN_IF_ERROR(given.status());
  LDNN_RETURN_IF_ERROR(CheckLifetime(given->lifetime_seconds));
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
  const Job& job = pass->snapshot.job;
  CredentialSituation situation = SituationOf(*pass);
  situation.policy = JobStorePolicy(job, kMaxRolePolicyCharacters).status();
  situation.may_try = may_try;
  const std::pair store(StoreBulkheadOf(job), pass->memory->store_secrets.version);
  {
    const std::lock_guard lock(mutex_);
    const auto found = trials_.find(store);
    if (found != trials_.end()) situation.trial = found->second;
  }
  CredentialChoice choice = ChooseCredentials(situation);
  if (choice.step == CredentialStep::kTryOut) {
    situation.trial = Try(pass);
    if (HoldsForOtherJobs(*situation.trial)) {
      const std::lock_guard lock(mutex_);
      trials_[store] = *situation.trial;
    }
    choice = ChooseCredentials(situation);
  }
  if (choice.step == CredentialStep::kAskAgain) return choice.why;
  Use(choice, pass);
  return choice.step != CredentialStep::kAwaitAccept;
}

std::optional<CredentialLife> CredentialBroker::LifeOf(const Pass& pass) const {
  const std::optional<IssuedCredentials>& issued = pass.memory->issued;
  const bool current =
      issued.has_value() && issued->of_version == pass.memory->store_secrets.version;
  if (!current) return std::nullopt;
  return CredentialLife{ToSeconds(issued->end - dependencies_.runtime.clock.Now()),
                        issued->lifetime_seconds};
}

bool CredentialBroker::NeedsOther(const Pass& pass, double budget_seconds) const {
  return HasOwn(pass) && RenewalSeconds(LifeOf(pass), budget_seconds).has_value();
}

Status CredentialBroker::AddTo(SliceRequest* request, Pass* pass) {
  if (!HasOwn(*pass)) return OkStatus();
  JobMemory& memory = *pass->memory;
  LDNN_RETURN_IF_ERROR(stores_.Open(pass).status());  // its Secrets may have changed
  const double budget = request->budget_seconds;
  if (const auto seconds = RenewalSeconds(LifeOf(*pass), budget); seconds.has_value()) {
    const Status issued = Issue(pass, *seconds);
    if (!issued.ok()) {
      const CredentialChoice choice = ChooseAfterRefusal(SituationOf(*pass), issued);
      if (choice.step == CredentialStep::kAskAgain) return choice.why;
      Use(choice, pass);
      // The slice goes without. Functions started without credentials are refused by the store,
      // and replaced by others that have the Secret's.
      return memory.memo.credentials_refused;
    }
  }
  request->budget_seconds = BudgetWithin(*LifeOf(*pass), budget);
  request->credentials = memory.issued->credentials;
  return OkStatus();
}

void CredentialBroker::ObserveRefusals(Pass* pass) {
  JobMemory& memory = *pass->memory;
  // The environment of a function may hold what the Secret no longer says.
  if (!memory.observations.credentials_changed && memory.AnyRefused()) {
    memory.store_refused = true;
    memory.issued.reset();  // they may be what was refused
  }
  // An error is reported by the first action that needs the store.
  if (memory.store_refused) (void)stores_.ReadSecrets(pass);
  memory.observations.credentials_changed = memory.AnyRefusedWithOtherSecrets(HasOwn(*pass));
  memory.observations.store_moved = memory.AnyStartedAtOtherEndpoint();
}

Status CredentialBroker::EnsureJobKey(Pass* pass) {
  JobMemory& memory = *pass->memory;
  if (!memory.job_key.key.empty()) return OkStatus();
  const Status read = ReadJobKey(pass);
  // What only lasts a moment is not worth a condition.
  const bool passes = read.code() == StatusCode::kUnavailable;
  memory.memo.key_error = passes ? OkStatus() : read;
  return read;
}

Status CredentialBroker::ReadJobKey(Pass* pass) {
  JobMemory& memory = *pass->memory;
  const Job& job = pass->snapshot.job;
  const ObjectName name{job.metadata.namespace_name, JobKeySecretName(job)};
  Result<Json> secret = NotFoundError("not asked for");
  // A job whose functions have never begun most likely has none.
  if (!job.status.execution.functions.empty()) secret = dependencies_.kube.Get(SecretType(), name);
  if (!secret.ok() && secret.status().code() == StatusCode::kNotFound) {
    JobKey key = {MakeJobKey(dependencies_.runtime.random)};
    if (dependencies_.make_certificate != nullptr && job.spec.addressing == Addressing::kPod) {
      LDNN_ASSIGN_OR_RETURN(key.tls, dependencies_.make_certificate(job.metadata.uid));
    }
    secret = dependencies_.kube.Create(SecretType(), JobKeySecret(job, key));
    // Another process created it, or the answer to an earlier attempt was lost.
    if (!secret.ok()) secret = dependencies_.kube.Get(SecretType(), name);
  }
  if (!secret.ok()) {
    return secret.status().WithContext("cannot get the key of job " + job.metadata.name);
  }
  std::optional<JobKey> key = KeyOfSecret(job, *secret);
  if (!key.has_value()) {
    LDNN_ASSIGN_OR_RETURN(const bool is_left_over,
                          DeleteOfEarlierJob(dependencies_.kube, SecretType(), *secret,
                                             job.metadata.name, job.metadata.uid));
    if (is_left_over) {
      return UnavailableError("secret " + name.name +
                              " is of another job of the same name, which is gone, and is deleted");
    }
    return FailedPreconditionError("secret " + name.name + " is not the key of this job; " +
                                   kDeleteKey);
  }
  FunctionAccess access = {key->key};
  if (key->tls.has_value()) {
    if (const Status usable = CheckTlsIdentity(*key->tls); !usable.ok()) {
      return FailedPreconditionError("secret " + name.name + " is not the key of this job, since " +
                                     usable.message() + "; " + kDeleteKey);
    }
    LDNN_ASSIGN_OR_RETURN(access.certificate_digest, CertificateDigest(key->tls->certificate));
  }
  memory.job_key = *std::move(key);
  memory.access = std::move(access);
  return OkStatus();
}

Result<FunctionSecrets> CredentialBroker::SecretsOf(Pass* pass) {
  LDNN_RETURN_IF_ERROR(EnsureJobKey(pass));
  LDNN_RETURN_IF_ERROR(stores_.Open(pass).status());  // what its Secrets say is known with it
  StoreSecrets secrets = pass->memory->store_secrets;
  const bool names_key = !secrets.credentials.access_key.empty();
  const bool exposed = dependencies_.store_environment.contains("LAMBDADNN_S3_ACCESS_KEY_ID");
  if (exposed && !names_key && dependencies_.own_credentials != nullptr) {
    secrets.credentials = dependencies_.own_credentials();
  }
  auto environment = StoreEnvironment(dependencies_.store_environment, secrets);
  const ObjectStoreSpec& store = pass->snapshot.job.spec.object_store;
  if (names_key && !store.endpoint.empty()) {
    // The user's credentials are for the user's service: data and models are read there as well.
    environment["LAMBDADNN_S3_ENDPOINT"] = store.endpoint;
    environment["LAMBDADNN_S3_REGION"] = store.region;
    environment["LAMBDADNN_S3_PATH_STYLE"] = store.path_style ? "true" : "false";
  }
  const bool own = HasOwn(*pass);
  if (own) environment = WithoutCredentials(std::move(environment));
  pass->memory->memo.asked_with = pass->memory->StartedWith(own);
  return FunctionSecrets{pass->memory->job_key, std::move(environment)};
}

}  // namespace lambdadnn
