// SPDX-License-Identifier: Apache-2.0
// Actions that change the API object and the functions.
#include <algorithm>
#include <cmath>
#include <set>

#include "operator/controller/decide/status.h"
#include "operator/controller/loop/reconciler.h"
#include "operator/controller/planning/profile_fit.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_key.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {

Status Reconciler::WriteFinalizers(Pass* pass, bool with_ours) {
  std::vector<std::string> finalizers = pass->snapshot.job.metadata.finalizers;
  std::erase(finalizers, kCleanupFinalizer);
  if (with_ours) finalizers.emplace_back(kCleanupFinalizer);
  const Json patch = {
      {"metadata",
       {{"finalizers", finalizers}, {"resourceVersion", ResourceVersionOf(*pass->object)}}}};
  Result<Json> written =
      dependencies_.kube.Patch(ServerlessTrainingJobType(), pass->name, patch, Subresource::kNone);
  if (!written.ok()) {
    ReadBack(pass);
    if (!with_ours && pass->gone) return OkStatus();
    return written.status().WithContext("cannot write the finalizers of job " + pass->name.name);
  }
  if (!with_ours) {
    pass->gone = true;
    cache_.Remove(pass->name, UidOf(*pass->object));
    return OkStatus();
  }
  cache_.Put(*std::move(written));
  return Load(pass);
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const AddFinalizer&) {
  LDNN_RETURN_IF_ERROR(WriteFinalizers(pass, true));
  return Next::kDecideAgain;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const RemoveFinalizer&) {
  LDNN_RETURN_IF_ERROR(WriteFinalizers(pass, false));
  return Next::kGoOn;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const WriteDecision& action) {
  // What earlier processes saw, before this one's first save replaces it.
  if (action.execution.has_value()) LoadHistory(pass);
  Refresh(pass);
  JobMemory& memory = *pass->memory;
  const Job before = pass->snapshot.job;
  // A first plan may begin with another job's incarnation.
  if (action.room.has_value() && !queue_.Reserve(pass->name, *action.room)) {
    return Next::kDecideAgain;
  }
  const bool falls_back = before.status.plan.has_value() && action.execution.has_value() &&
                          action.execution->incarnation > before.status.execution.incarnation;
  if (falls_back) ++pass->snapshot.meter.usage.restarts;
  const Status written = WriteStatus(pass, ComputeStatus(pass->snapshot, action));
  queue_.Settle(pass->name);
  LDNN_RETURN_IF_ERROR(written);
  if (falls_back) {
    ++memory.meter.usage.restarts;
    memory.history.problems.push_back(action.why);
  }
  const double time = memory.Time(pass->snapshot.now);
  if (action.profile.has_value() && action.why == "profile") {
    memory.history.profiling_seconds = time;
    if (dependencies_.profile_cache != nullptr &&
        action.profile->residual <= options_.max_profile_residual) {
      dependencies_.profile_cache->Keep(ProfileSignature(before.spec, options_.platform),
                                        *action.profile);
    }
  }
  const bool other_plan =
      action.plan.has_value() &&
      (!before.status.plan.has_value() || action.plan->revision != before.status.plan->revision);
  if (other_plan) {
    memory.history.planned_at = time;
    memory.history.functions_ready_at = 0;
  }
  if (action.plan.has_value() || action.execution.has_value()) {
    memory.facts.start_since.reset();
    if (!action.start_failed) {
      memory.facts.start_attempts = 0;
      memory.facts.start_again_at.reset();
    }
    // A new incarnation repeats iterations.
    if (falls_back) memory.facts.iteration = action.execution->first_iteration;
    memory.facts.iteration_at = pass->snapshot.now;
    // Nothing of a round that only now begins can have left a record.
    const bool begun = CurrentRound(before) == CurrentRound(pass->snapshot.job) &&
                       !before.status.execution.functions.empty();
    if (!begun) memory.facts.records_read = CurrentRound(pass->snapshot.job);
    // Of a job that is only starting there is none.
    if (IsStarted(before)) SaveHistory(pass);
  }
  const bool replanned = other_plan && before.status.plan.has_value();
  if (falls_back || replanned) DropExchange(pass, *CurrentRound(before));
  if (action.start_time.has_value()) {
    if (action.start_time->empty()) {
      memory.facts.admission.reset();
    } else {
      memory.facts.start_again_at.reset();
    }
    memory.facts.records_read.reset();
    memory.facts.checkpoint_looked_up.reset();
    memory.active_since = {};
    Refresh(pass);
    // What was before the start took none of the job's time.
    if (memory.history.functions_ready_at == 0) {
      memory.history.planned_at = memory.Time(pass->snapshot.now);
    }
    if (action.start_time->empty()) SaveHistory(pass);
    // Where many jobs come at once, what becomes of each is told before the functions of any start.
    return Next::kYield;
  }
  return Next::kDecideAgain;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const DeleteJobObject&) {
  const Status deleted = dependencies_.kube.Delete(ServerlessTrainingJobType(), pass->name,
                                                   pass->snapshot.job.metadata.uid);
  ReadBack(pass);
  if (deleted.code() == StatusCode::kNotFound) return Next::kGoOn;
  LDNN_RETURN_IF_ERROR(deleted);
  return Next::kGoOn;
}

void Reconciler::BeginStarting(Pass* pass) {
  Facts& facts = pass->memory->facts;
  if (!facts.start_since.has_value()) facts.start_since = dependencies_.runtime.clock.Now();
  facts.start_error = OkStatus();
}

Status Reconciler::EnsureJobKey(Pass* pass) {
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

Result<FunctionSecrets> Reconciler::SecretsOf(Pass* pass) {
  LDNN_RETURN_IF_ERROR(EnsureJobKey(pass));
  LDNN_RETURN_IF_ERROR(StoreOf(pass).status());  // what its Secrets say is known with it
  const StoreSecrets& secrets = pass->memory->store_secrets;
  auto environment = StoreEnvironment(dependencies_.store_environment, secrets);
  const ObjectStoreSpec& store = pass->snapshot.job.spec.object_store;
  if (!secrets.credentials.access_key.empty() && !store.endpoint.empty()) {
    // The user's credentials are for the user's service: data and models are read there as well.
    environment["LAMBDADNN_S3_ENDPOINT"] = store.endpoint;
    environment["LAMBDADNN_S3_REGION"] = store.region;
    environment["LAMBDADNN_S3_PATH_STYLE"] = store.path_style ? "true" : "false";
  }
  const bool own = HasOwnCredentials(*pass);
  if (own) environment = WithoutCredentials(std::move(environment));
  pass->memory->facts.secrets_version = pass->memory->StartedWith(own);
  return FunctionSecrets{pass->memory->job_key, std::move(environment)};
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const EnsurePlannedGroups&) {
  LDNN_RETURN_IF_ERROR(ConfirmLead(pass));
  BeginStarting(pass);
  LDNN_ASSIGN_OR_RETURN(const FunctionSecrets secrets, SecretsOf(pass));
  for (const FunctionGroup& group :
       PlannedGroups(pass->snapshot.job, PlatformOf(pass->snapshot), secrets)) {
    const Status ensured = dependencies_.backend.EnsureGroup(group);
    if (ensured.code() == StatusCode::kResourceExhausted) {
      pass->memory->facts.start_error = ensured;
      return Do(pass, DeleteAllGroups{true});
    }
    // Who waits for functions is told why there are none.
    if (!ensured.ok()) pass->memory->facts.start_error = ensured;
    LDNN_RETURN_IF_ERROR(ensured);
  }
  return Next::kGoOn;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const EnsureProfileGroup& action) {
  LDNN_RETURN_IF_ERROR(ConfirmLead(pass));
  BeginStarting(pass);
  LDNN_ASSIGN_OR_RETURN(const FunctionSecrets secrets, SecretsOf(pass));
  const Status ensured = dependencies_.backend.EnsureGroup(ProfileGroup(
      pass->snapshot.job, options_.platform, action.count, action.memory_mib, secrets));
  if (ensured.code() == StatusCode::kResourceExhausted) {
    pass->memory->facts.start_error = ensured;
    return Do(pass, DeleteAllGroups{true});
  }
  LDNN_RETURN_IF_ERROR(ensured);
  return Next::kGoOn;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const DeleteAllGroups& action) {
  LDNN_RETURN_IF_ERROR(ConfirmLead(pass));
  GatherLogs(pass);
  JobMemory& memory = *pass->memory;
  Facts& facts = memory.facts;
  const Job& job = pass->snapshot.job;
  std::set<std::string> groups;
  for (const auto& [uid, fact] : facts.instances) {
    if (!fact.gone.has_value()) groups.insert(fact.instance.group);
  }
  if (job.status.plan.has_value()) {
    groups.insert(WorkersGroupName(job.status.plan->revision));
    groups.insert(ServersGroupName(job.status.plan->revision));
  } else {
    groups.insert(kProfileGroup);
  }
  for (const std::string& group : groups) {
    const Status deleted = dependencies_.backend.DeleteGroup(IdentityOf(job), group);
    if (deleted.ok() || deleted.code() == StatusCode::kNotFound) continue;
    if (!facts.cleanup_since.has_value()) {
      facts.cleanup_since = dependencies_.runtime.clock.Now();
    }
    facts.cleanup_error = deleted;
    return deleted;
  }
  if (action.start_failed) {
    const double doubled = options_.start_retry_seconds * std::pow(2.0, facts.start_attempts);
    const double chance = 0.75 + 0.5 * dependencies_.runtime.random.Uniform();
    ++facts.start_attempts;
    facts.start_since.reset();
    facts.start_again_at =
        dependencies_.runtime.clock.Now() +
        FromSeconds(std::min(doubled, options_.max_start_retry_seconds) * chance);
    queue_.StandBack(pass->name, *facts.start_again_at);
  }
  return Next::kGoOn;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const DeleteOneGroup& action) {
  LDNN_RETURN_IF_ERROR(ConfirmLead(pass));
  LDNN_RETURN_IF_ERROR(
      dependencies_.backend.DeleteGroup(IdentityOf(pass->snapshot.job), action.group));
  pass->memory->facts.start_since.reset();
  return Next::kGoOn;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const DeleteFunction& action) {
  LDNN_RETURN_IF_ERROR(ConfirmLead(pass));
  const Status deleted =
      dependencies_.backend.DeleteInstance(IdentityOf(pass->snapshot.job), action.uid);
  if (!deleted.ok() && deleted.code() != StatusCode::kNotFound) return deleted;
  return Next::kGoOn;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const SetFunctionCpu& action) {
  Facts& facts = pass->memory->facts;
  const Status set =
      dependencies_.backend.SetCpu(IdentityOf(pass->snapshot.job), action.uid, action.milli_cpu);
  facts.cpu_fixed = set.code() == StatusCode::kUnimplemented;
  if (facts.cpu_fixed) return Next::kDecideAgain;
  LDNN_RETURN_IF_ERROR(set);
  facts.cpu_set[action.uid] = action.milli_cpu;
  return Next::kDecideAgain;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const AskKernels& action) {
  Facts& facts = pass->memory->facts;
  const auto found = facts.instances.find(action.uid);
  if (found == facts.instances.end()) return Next::kGoOn;
  InstanceFact& worker = found->second;
  const Instant now = dependencies_.runtime.clock.Now();
  // Patience begins anew where others were waited for in between.
  const bool anew = !worker.kernels_first_asked.has_value() ||
                    now - worker.kernels_asked >= FromSeconds(options_.ready_silence_seconds);
  if (anew) worker.kernels_first_asked = now;
  worker.kernels_asked = now;
  dependencies_.slices.AskKernels(IdentityOf(pass->snapshot.job), action.uid,
                                  worker.instance.address);
  return Next::kGoOn;
}

void Reconciler::StartSlice(Pass* pass, const SliceRequest& request,
                            const std::string& instance_uid) {
  Facts& facts = pass->memory->facts;
  const auto instance = facts.instances.find(instance_uid);
  if (instance == facts.instances.end()) return;
  const Instant now = dependencies_.runtime.clock.Now();
  auto [found, is_new] = facts.slices.try_emplace(request.invocation);
  SliceFact& slice = found->second;
  if (is_new) {
    slice.invocation = request.invocation;
    slice.instance_uid = instance_uid;
    slice.role = request.role();
    slice.plan_revision = request.plan.revision;
    slice.incarnation = request.incarnation;
    slice.first_iteration = request.first_iteration;
    slice.started = slice.last_heard = now;
    Tell(*pass, {{"type", "slice"},
                 {"job", pass->name.name},
                 {"time", pass->memory->Time(now)},
                 {"uid", instance_uid},
                 {"role", request.role().Name()},
                 {"outcome", "Started"},
                 {"firstIteration", request.first_iteration}});
  }
  slice.phase = SlicePhase::kStarting;
  slice.last_attach = now;
  dependencies_.slices.Start(instance_uid, instance->second.instance.address, request,
                             pass->memory->job_key);
}

double Reconciler::TrainingBudgetSeconds(const Pass& pass) const {
  const double timeout = PlatformOf(pass.snapshot).function_timeout_seconds;
  return timeout -
         std::min(timeout * options_.timeout_margin_share, options_.max_timeout_margin_seconds);
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const StartTrainingSlice& action) {
  LDNN_RETURN_IF_ERROR(EnsureJobKey(pass));
  SliceRequest request = MakeTrainingSlice(pass->snapshot.job, action.role, options_.leader_epoch,
                                           TrainingBudgetSeconds(*pass));
  LDNN_RETURN_IF_ERROR(AddCredentials(pass, &request));
  JobHistory& history = pass->memory->history;
  if (history.functions_ready_at == 0) {
    history.functions_ready_at = pass->memory->Time(dependencies_.runtime.clock.Now());
    history.cold_start_seconds += std::max(0.0, history.functions_ready_at - history.planned_at);
  }
  StartSlice(pass, request, action.instance_uid);
  return Next::kGoOn;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const StartProfileSlice& action) {
  LDNN_RETURN_IF_ERROR(EnsureJobKey(pass));
  ProfileConfig config;
  config.iterations = options_.profile_iterations;
  config.seconds = options_.profile_seconds;
  config.filler = action.filler;
  config.warmup_iterations = options_.profile_warmup_iterations;
  config.batch_size = action.batch_size;
  SliceRequest request =
      MakeProfileSlice(pass->snapshot.job, options_.platform, action.rank, action.memory_mib,
                       config, options_.leader_epoch, options_.profile_timeout_seconds);
  LDNN_RETURN_IF_ERROR(AddCredentials(pass, &request));
  StartSlice(pass, request, action.instance_uid);
  return Next::kGoOn;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const StopSlice& action) {
  dependencies_.slices.Stop(action.invocation, action.graceful);
  const auto found = pass->memory->facts.slices.find(action.invocation);
  if (found == pass->memory->facts.slices.end()) return Next::kGoOn;
  const Instant now = dependencies_.runtime.clock.Now();
  (action.graceful ? found->second.graceful_stop_sent : found->second.stop_sent) = now;
  return Next::kGoOn;
}

Result<Reconciler::Next> Reconciler::Do(Pass* pass, const ForgetSlice& action) {
  dependencies_.slices.Forget(action.invocation);
  pass->memory->facts.slices.erase(action.invocation);
  return Next::kDecideAgain;
}

}  // namespace lambdadnn
