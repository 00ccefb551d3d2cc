// SPDX-License-Identifier: Apache-2.0
// Credentials for the functions of one job alone (docs/design/016-credentials-of-a-job.md).
#include <algorithm>
#include <cmath>

#include "common/protocol/object_keys.h"
#include "operator/controller/loop/reconciler.h"
#include "operator/resources/job_policy.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// Before they end a slice has: for its start to be taken, and for a server whose seconds are not
// ours.
constexpr double kMarginSeconds = 30;
// A leaked one should not be good for long.
constexpr double kLongestSeconds = 12 * 3600;
// What is given for less is of no use.
constexpr double kLeastSeconds = 4 * kMarginSeconds;
// Of a store that has just answered something else.
constexpr int kAttempts = 3;

// Messages of stores may be long; the API's limit is 1,024.
constexpr size_t kMaxMessageCharacters = 800;

std::string Shortened(const std::string& text) {
  return text.size() <= kMaxMessageCharacters ? text : text.substr(0, kMaxMessageCharacters) + " …";
}

// What a job's functions do with its prefix they may; what lies beside it they may not even read.
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

bool Reconciler::HasOwnCredentials(const Pass& pass) {
  const std::string& decided = pass.memory->facts.store_credentials;
  const std::string& told = pass.snapshot.job.status.store_credentials;
  return (decided.empty() ? told : decided) == kPerJobCredentials;
}

bool Reconciler::HasSecretCredentials(const Job& job) const {
  return options_.use_store_secrets && !job.spec.object_store.credentials_secret.empty();
}

bool Reconciler::MayHaveOthersCredentials(const Job& job) const {
  return HasSecretCredentials(job) || !options_.tenants.has_value() ||
         options_.tenants->expose_operator_credentials;
}

bool Reconciler::IsChoiceKept(const Job& job) const {
  const std::string& told = job.status.store_credentials;
  if (told == kPerJobCredentials) return true;
  if (told == kSecretCredentials) return HasSecretCredentials(job);
  // Whoever may write status may have written it, or the operator has been told to be stricter.
  return (!told.empty() || IsStarted(job)) && MayHaveOthersCredentials(job);
}

void Reconciler::UseOthersCredentials(Pass* pass, const Status& why) {
  Facts& facts = pass->memory->facts;
  const Job& job = pass->snapshot.job;
  pass->memory->issued.reset();
  if (!MayHaveOthersCredentials(job)) {
    facts.credentials_refused = FailedPreconditionError(
        "no credentials for this job alone: " + Shortened(why.message()) +
        "; name a Secret of yours in spec.objectStore.credentialsSecretRef, or mend what the store "
        "lacks (the operator's own credentials are not given to jobs)");
    if (!facts.credentials_refused_since.has_value()) {
      facts.credentials_refused_since = dependencies_.runtime.clock.Now();
    }
    return;
  }
  facts.store_credentials = HasSecretCredentials(job) ? kSecretCredentials : kOperatorCredentials;
  facts.store_credentials_message = Shortened(why.message());
}

Status Reconciler::IssueCredentials(Pass* pass, double seconds) {
  JobMemory& memory = *pass->memory;
  LDNN_RETURN_IF_ERROR(StoreOf(pass).status());  // what its Secrets say is known with it
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
  memory.facts.credentials_refused = OkStatus();
  memory.facts.credentials_refused_since.reset();
  return OkStatus();
}

Status Reconciler::TryCredentials(Pass* pass) {
  LDNN_RETURN_IF_ERROR(IssueCredentials(pass, kMinRoleSeconds));
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

Result<bool> Reconciler::ChooseCredentials(Pass* pass, bool may_try) {
  JobMemory& memory = *pass->memory;
  const Job& job = pass->snapshot.job;
  const StoreReference reference = MakeStoreReference(job);
  const bool chosen = !memory.facts.store_credentials.empty() || IsChoiceKept(job);
  const bool possible = dependencies_.assume_role != nullptr && reference.uri.starts_with("s3://");
  if (chosen || !possible) return true;
  const Result<std::string> policy = JobStorePolicy(job, kMaxRolePolicyCharacters);
  if (!policy.ok()) {
    UseOthersCredentials(pass, policy.status());
    return true;
  }

  const std::string store = StoreLaneOf(job) + " " + memory.store_secrets.version;
  std::optional<Status> answer;
  {
    const std::lock_guard lock(mutex_);
    const auto found = roles_.find(store);
    if (found != roles_.end()) answer = found->second;
  }
  if (!answer.has_value() && !may_try) return false;
  if (!answer.has_value()) {
    answer = TryCredentials(pass);
    // A moment's trouble says nothing about the next job.
    if (answer->code() != StatusCode::kUnavailable) {
      const std::lock_guard lock(mutex_);
      roles_[store] = *answer;
    }
  }
  if (answer->ok()) {
    memory.facts.store_credentials = kPerJobCredentials;
    return true;
  }
  // A moment's trouble fails no job that has nothing else.
  const bool again = answer->code() == StatusCode::kUnavailable;
  if (again && !MayHaveOthersCredentials(job)) return *answer;
  UseOthersCredentials(pass, *answer);
  return true;
}

bool Reconciler::NeedsCredentials(const Pass& pass, double budget_seconds) const {
  if (!HasOwnCredentials(pass)) return false;
  const std::optional<IssuedCredentials>& issued = pass.memory->issued;
  if (!issued.has_value() || issued->of_version != pass.memory->store_secrets.version) return true;
  const double left = ToSeconds(issued->end - dependencies_.runtime.clock.Now());
  const double wanted = budget_seconds > 0 ? budget_seconds + kMarginSeconds : kLongestSeconds;
  // Where none last so long, half their life is.
  return left < std::min(wanted, issued->lifetime_seconds / 2);
}

Status Reconciler::AddCredentials(Pass* pass, SliceRequest* request) {
  if (!HasOwnCredentials(*pass)) return OkStatus();
  JobMemory& memory = *pass->memory;
  LDNN_RETURN_IF_ERROR(StoreOf(pass).status());  // its Secrets may have changed
  const double budget = request->budget_seconds;
  if (NeedsCredentials(*pass, budget)) {
    const double wanted = budget > 0 ? budget + 2 * kMarginSeconds : kLongestSeconds;
    const Status issued = IssueCredentials(pass, wanted);
    const bool again =
        issued.code() == StatusCode::kUnavailable || issued.code() == StatusCode::kCancelled;
    if (again) return issued;
    if (!issued.ok()) {
      UseOthersCredentials(pass, issued);
      // Functions that have none are refused, and replaced by some that have the Secret's.
      return memory.facts.credentials_refused;
    }
  }
  const IssuedCredentials& issued = *memory.issued;
  const double left = ToSeconds(issued.end - dependencies_.runtime.clock.Now()) - kMarginSeconds;
  request->budget_seconds = budget > 0 ? std::min(budget, left) : left;
  request->credentials = issued.credentials;
  return OkStatus();
}

}  // namespace lambdadnn
