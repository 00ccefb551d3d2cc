// SPDX-License-Identifier: Apache-2.0
// Actions on the functions and their slices.
#include "operator/controller/apply/action_executor.h"

#include <algorithm>
#include <set>
#include <variant>

#include "operator/controller/decide/start_back_off.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {

Result<ActionExecutor::Next> ActionExecutor::Apply(Pass* pass, const Action& action) {
  return std::visit([&](const auto& one) { return Do(pass, one); }, action);
}

void ActionExecutor::BeginStarting(Pass* pass) {
  Memo& memo = pass->memory->memo;
  if (!memo.start_since.has_value()) memo.start_since = dependencies_.runtime.clock.Now();
  memo.start_error = OkStatus();
}

void ActionExecutor::NoteStartError(const Status& ensured, Pass* pass) {
  if (ensured.ok()) return;
  pass->memory->memo.start_error = ensured;
  pass->memory->memo.refused_by_quota = dependencies_.backend.capabilities().quotas;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const EnsurePlannedGroups&) {
  LDNN_RETURN_IF_ERROR(writer_.ConfirmLead(pass));
  BeginStarting(pass);
  LDNN_ASSIGN_OR_RETURN(const FunctionSecrets secrets, credentials_.SecretsOf(pass));
  for (const FunctionGroup& group :
       PlannedGroups(pass->snapshot.job, PlatformOf(pass->snapshot), secrets)) {
    const Status ensured = dependencies_.backend.EnsureGroup(group);
    NoteStartError(ensured, pass);
    if (IsRefusedStart(pass->memory->memo)) return Next::kDecideAgain;
    LDNN_RETURN_IF_ERROR(ensured);
  }
  return Next::kGoOn;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const EnsureProfileGroup& action) {
  LDNN_RETURN_IF_ERROR(writer_.ConfirmLead(pass));
  BeginStarting(pass);
  LDNN_ASSIGN_OR_RETURN(const FunctionSecrets secrets, credentials_.SecretsOf(pass));
  const Status ensured = dependencies_.backend.EnsureGroup(ProfileGroup(
      pass->snapshot.job, options_.platform, action.count, action.memory_mib, secrets));
  NoteStartError(ensured, pass);
  if (IsRefusedStart(pass->memory->memo)) return Next::kDecideAgain;
  LDNN_RETURN_IF_ERROR(ensured);
  return Next::kGoOn;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const DeleteAllGroups& action) {
  LDNN_RETURN_IF_ERROR(writer_.ConfirmLead(pass));
  GatherLogs(pass);
  JobMemory& memory = *pass->memory;
  Observations& observed = memory.observations;
  Memo& memo = memory.memo;
  const Job& job = pass->snapshot.job;
  std::set<std::string> groups;
  for (const auto& [uid, fact] : observed.instances) {
    if (!fact.gone.has_value()) groups.insert(fact.instance.group);
  }
  if (job.status.plan.has_value()) {
    groups.insert(WorkersGroupName(job.status.plan->revision));
    groups.insert(ServersGroupName(job.status.plan->revision));
  }
  const bool measured = job.status.plan.has_value() && job.status.profile.has_value();
  if (!measured) groups.insert(kProfileGroup);
  Status all_deleted;
  for (const std::string& group : groups) {
    const Status deleted = dependencies_.backend.DeleteGroup(IdentityOf(job), group);
    // One that cannot be deleted does not keep the others.
    if (deleted.code() != StatusCode::kNotFound && all_deleted.ok()) all_deleted = deleted;
  }
  memo.release.Note(all_deleted, dependencies_.runtime.clock.Now());
  LDNN_RETURN_IF_ERROR(all_deleted);
  if (action.retry_seconds.has_value()) {
    const double seconds =
        WithStartJitter(*action.retry_seconds, dependencies_.runtime.random.Uniform());
    ++memo.start_attempts;
    memo.start_since.reset();
    memo.start_again_at = dependencies_.runtime.clock.Now() + FromSeconds(seconds);
    queue_.BackOff(pass->name, *memo.start_again_at);
  }
  return Next::kGoOn;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const DeleteOneGroup& action) {
  LDNN_RETURN_IF_ERROR(writer_.ConfirmLead(pass));
  LDNN_RETURN_IF_ERROR(
      dependencies_.backend.DeleteGroup(IdentityOf(pass->snapshot.job), action.group));
  pass->memory->memo.start_since.reset();
  return Next::kGoOn;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const DeleteFunction& action) {
  LDNN_RETURN_IF_ERROR(writer_.ConfirmLead(pass));
  const Status deleted =
      dependencies_.backend.DeleteInstance(IdentityOf(pass->snapshot.job), action.uid);
  if (!deleted.ok() && deleted.code() != StatusCode::kNotFound) return deleted;
  JobMemory& memory = *pass->memory;
  memory.memo.given_up[action.uid] = {action.reason, action.why};
  const auto found = memory.observations.instances.find(action.uid);
  // Perhaps the Secret is not what it was when this process read it.
  if (found != memory.observations.instances.end() && found->second.ShowsAnotherCertificate()) {
    memory.job_key = {};
  }
  return Next::kGoOn;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const SetFunctionCpu& action) {
  Memo& memo = pass->memory->memo;
  memo.cpu_fixed = !dependencies_.backend.capabilities().changes_cpu;
  if (memo.cpu_fixed) return Next::kDecideAgain;
  LDNN_RETURN_IF_ERROR(
      dependencies_.backend.SetCpu(IdentityOf(pass->snapshot.job), action.uid, action.milli_cpu));
  memo.cpu_set[action.uid] = action.milli_cpu;
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const AskFingerprint& action) {
  Observations& observed = pass->memory->observations;
  const auto found = observed.instances.find(action.uid);
  if (found == observed.instances.end()) return Next::kGoOn;
  // Its certificate is known by the Secret of the job's key.
  if (found->second.instance.endpoint.IsTls()) {
    LDNN_RETURN_IF_ERROR(credentials_.EnsureJobKey(pass));
  }
  const Instant now = dependencies_.runtime.clock.Now();
  auto [asked, is_first] = pass->memory->memo.fingerprints_asked.try_emplace(action.uid);
  // The time to answer starts again when the controller waited for other functions in between.
  const bool restarts =
      is_first || now - asked->second.last >= FromSeconds(options_.ready_silence_seconds);
  if (restarts) asked->second.first = now;
  asked->second.last = now;
  dependencies_.slices.AskFingerprint(IdentityOf(pass->snapshot.job), action.uid,
                                      found->second.instance.endpoint, pass->memory->access);
  return Next::kGoOn;
}

void ActionExecutor::StartSlice(Pass* pass, const SliceRequest& request,
                                const std::string& instance_uid) {
  Observations& observed = pass->memory->observations;
  const auto instance = observed.instances.find(instance_uid);
  if (instance == observed.instances.end()) return;
  const Instant now = dependencies_.runtime.clock.Now();
  auto [found, is_new] = observed.slices.try_emplace(request.invocation);
  SliceFact& slice = found->second;
  if (is_new) {
    slice.invocation = request.invocation;
    slice.instance_uid = instance_uid;
    slice.role = request.role();
    slice.attempt = request.roles.front().attempt;
    slice.plan_revision = request.plan.revision;
    slice.incarnation = request.incarnation;
    slice.first_iteration = request.first_iteration;
    slice.started = slice.last_heard = now;
    loader_.Tell(*pass, {{"type", "slice"},
                         {"job", pass->name.name},
                         {"time", pass->memory->Time(now)},
                         {"uid", instance_uid},
                         {"role", request.role().Name()},
                         {"outcome", "Started"},
                         {"firstIteration", request.first_iteration}});
  }
  slice.phase = SlicePhase::kStarting;
  slice.last_attach = now;
  dependencies_.slices.Start(instance_uid, instance->second.instance.endpoint, request,
                             pass->memory->access);
}

double ActionExecutor::TrainingBudgetSeconds(const Pass& pass) const {
  const double timeout = PlatformOf(pass.snapshot).function_timeout_seconds;
  return timeout -
         std::min(timeout * options_.timeout_margin_share, options_.max_timeout_margin_seconds);
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const StartTrainingSlice& action) {
  LDNN_RETURN_IF_ERROR(credentials_.EnsureJobKey(pass));
  const Job& job = pass->snapshot.job;
  const Binding binding(job.status.execution);
  SliceRequest request = MakeTrainingSlice(job, binding.Assigned(action.role),
                                           options_.leader_epoch, TrainingBudgetSeconds(*pass));
  const auto& instances = pass->memory->observations.instances;
  request.peers = PeersOf(request.plan, action.role, [&](const Role& role) -> std::string {
    const BoundFunction* const bound = binding.Find(role);
    if (bound == nullptr) return "";
    const auto found = instances.find(bound->uid);
    return found == instances.end() ? "" : found->second.instance.peer_address;
  });
  LDNN_RETURN_IF_ERROR(credentials_.AddTo(&request, pass));
  JobHistory& history = pass->memory->history;
  if (history.functions_ready_at == 0) {
    history.functions_ready_at = pass->memory->Time(dependencies_.runtime.clock.Now());
    history.cold_start_seconds += std::max(0.0, history.functions_ready_at - history.planned_at);
  }
  StartSlice(pass, request, action.instance_uid);
  return Next::kGoOn;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const StartProfileSlice& action) {
  LDNN_RETURN_IF_ERROR(credentials_.EnsureJobKey(pass));
  ProfileConfig config;
  config.iterations = options_.profile_iterations;
  config.seconds = options_.profile_seconds;
  config.filler = action.filler;
  config.rate_only = action.rate_only;
  pass->memory->memo.profile_suffices = false;
  config.warmup_iterations = options_.profile_warmup_iterations;
  config.batch_size = action.batch_size;
  const Role role = {RoleKind::kProfile, action.rank, {}};
  const int attempt = 1 + pass->memory->memo.profile_slices_ended[{action.memory_mib, action.rank}];
  SliceRequest request =
      MakeProfileSlice(pass->snapshot.job, options_.platform, {role, attempt}, action.memory_mib,
                       config, options_.leader_epoch, options_.profile_timeout_seconds);
  const auto& instances = pass->memory->observations.instances;
  for (int rank = 0; rank < static_cast<int>(action.uids.size()); ++rank) {
    const auto other = instances.find(action.uids[static_cast<size_t>(rank)]);
    if (rank == action.rank || other == instances.end()) continue;
    const std::string& address = other->second.instance.peer_address;
    if (!address.empty()) request.peers.push_back({{RoleKind::kWorker, rank, {}}, address});
  }
  LDNN_RETURN_IF_ERROR(credentials_.AddTo(&request, pass));
  StartSlice(pass, request, action.instance_uid);
  return Next::kGoOn;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const EndProfiling&) {
  pass->memory->memo.profile_suffices = true;
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const StopSlice& action) {
  dependencies_.slices.Stop(action.invocation, action.graceful);
  if (!pass->memory->observations.slices.contains(action.invocation)) return Next::kGoOn;
  StopSent& stop = pass->memory->memo.stops[action.invocation];
  (action.graceful ? stop.gracefully : stop.at_once) = dependencies_.runtime.clock.Now();
  return Next::kGoOn;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const ForgetSlice& action) {
  dependencies_.slices.Forget(action.invocation);
  auto& slices = pass->memory->observations.slices;
  if (const auto found = slices.find(action.invocation); found != slices.end()) {
    const SliceFact& slice = found->second;
    if (slice.role.kind == RoleKind::kProfile) {
      const auto size = static_cast<int>(slice.first_iteration);
      pass->memory->memo.profile_slices_ended[{size, slice.role.rank}] = slice.attempt;
    }
    slices.erase(found);
  }
  pass->memory->memo.stops.erase(action.invocation);
  return Next::kDecideAgain;
}

}  // namespace lambdadnn
