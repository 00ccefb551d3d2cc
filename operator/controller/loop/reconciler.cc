// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/loop/reconciler.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/telemetry/log.h"
#include "operator/api/conditions.h"
#include "operator/controller/apply/job_trace.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/gather_needs.h"
#include "operator/controller/decide/policies.h"
#include "operator/controller/decide/status.h"
#include "operator/controller/loop/snapshot_json.h"
#include "operator/controller/store/store_access.h"
#include "operator/controller/store/store_bulkheads.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// Decisions in one pass at most; the next pass continues.
constexpr int kMaxSteps = 16;

// Whether a pass over a finished job needs nothing that an earlier one has learnt. Most jobs of a
// cluster are such, and the memory of each would be several times its text.
bool IsForgettable(const Pass& pass) {
  const JobSnapshot& snapshot = pass.snapshot;
  const Observations& observed = *snapshot.observations;
  return !pass.gone && !pass.yields && IsFinished(snapshot.job) &&
         snapshot.job.metadata.deletion_timestamp.empty() && snapshot.problem.ok() &&
         snapshot.unreadable.ok() && pass.memory->refused_fields.empty() &&
         observed.slices.empty() && !AnyLiveInstance(observed) && IsPastLateCleanup(snapshot);
}

// Removes the operator's own credentials from the environment of functions, unless exposed.
ControllerDependencies ForTenants(ControllerDependencies dependencies,
                                  const ControllerOptions& options) {
  const bool expose = !options.tenants || options.tenants->expose_operator_credentials;
  if (!expose) {
    dependencies.store_environment = WithoutCredentials(std::move(dependencies.store_environment));
  }
  return dependencies;
}

}  // namespace

Reconciler::Reconciler(const ControllerDependencies& dependencies, const ControllerOptions& options,
                       ObjectCache& cache, std::function<void(const ObjectName&)> wake,
                       std::function<bool()> synced, std::function<Duration()> behind)
    : dependencies_(ForTenants(dependencies, options)),
      options_(options),
      cache_(cache),
      wake_(std::move(wake)),
      readings_(cache_),
      queue_(dependencies_.runtime, dependencies_.backend, options_, cache_, readings_,
             std::move(synced)),
      loader_(dependencies_, options_, cache_, readings_, queue_),
      stores_(dependencies_, options_),
      credentials_(dependencies_, options_, stores_),
      writer_(dependencies_, cache_, loader_),
      executor_({dependencies_, options_, queue_, loader_, stores_, credentials_, writer_}),
      scheduler_(options_, std::move(behind)) {}

void Reconciler::Drop(const ObjectName& name) {
  loader_.Drop(name);
  scheduler_.Drop(name);
}

size_t Reconciler::remembered() const {
  return std::max(loader_.remembered(), scheduler_.in_progress());
}

// The planner is given the cluster's current limits. While a plan is carried out, the limits that
// it was made with hold, if this process made it.
Status Reconciler::ReadLimits(Pass* pass) {
  if (dependencies_.cluster == nullptr) return OkStatus();
  const LimitsNeed need = NeedOfLimits(pass->snapshot);
  if (need == LimitsNeed::kNone) return OkStatus();
  const Job& job = pass->snapshot.job;
  JobMemory& memory = *pass->memory;
  const Result<ClusterLimits> limits =
      dependencies_.cluster->Limits(job.metadata.namespace_name, job.spec.pod_template);
  if (!limits.ok()) {
    return need == LimitsNeed::kRequired
               ? limits.status().WithContext("cannot plan without the cluster's limits")
               : OkStatus();
  }
  auto view = std::make_shared<PlatformView>();
  view->narrowed = WithinLimits(options_.platform, *limits, job.spec.functions.gpu);
  view->unknown = limits->unknown;
  memory.observations.platform = std::move(view);
  if (memory.observations.profile_platform == nullptr || !AnyLiveInstance(memory.observations)) {
    memory.observations.profile_platform = memory.observations.platform;
  }
  return OkStatus();
}

Status Reconciler::Gather(Pass* pass) {
  loader_.Refresh(pass);
  LDNN_RETURN_IF_ERROR(ReadLimits(pass));
  const Job& job = pass->snapshot.job;
  JobMemory& memory = *pass->memory;
  if (!MayHaveFunctions(job)) {
    memory.observations.instances_known = true;
    return OkStatus();
  }
  const auto news = [&](const Json& event) { loader_.Tell(*pass, event); };
  Result<std::vector<FunctionInstance>> instances = dependencies_.backend.List(IdentityOf(job));
  const Instant now = dependencies_.runtime.clock.Now();
  if (instances.ok()) {
    memory.ObserveInstances(*instances, job, ProfilePlatformOf(pass->snapshot), now, news);
  } else {
    // Decisions use the instances that were known; slices are observed without the backend.
    memory.memo.start_error = instances.status();
    const bool ending = !job.metadata.deletion_timestamp.empty() || IsEnding(job);
    if (ending) memory.memo.release.Note(instances.status(), now);
  }
  memory.ObserveSlices(dependencies_.slices.Poll(job.metadata.uid), job, options_.platform, now,
                       news);
  memory.ObserveFingerprints(dependencies_.slices.TakeFingerprints(job.metadata.uid), now);
  credentials_.ObserveRefusals(pass);
  loader_.Refresh(pass);
  return OkStatus();
}

Status Reconciler::DecideAndApply(Pass* pass) {
  for (int step = 0; step < kMaxSteps && !pass->gone; ++step) {
    loader_.Refresh(pass);
    pass->held = IsHeld(pass->snapshot);
    bool again = false;
    for (const Action& action : Decide(pass->snapshot)) {
      LDNN_RETURN_IF_ERROR(writer_.CheckWanted());
      const bool uses_store = executor_.UsesStore(*pass, action);
      if (!pass->may_wait && uses_store) {
        pass->store_bulkhead = StoreBulkheadOf(pass->snapshot.job);
        return OkStatus();
      }
      const Result<ActionExecutor::Next> applied = executor_.Apply(pass, action);
      if (uses_store) {
        pass->memory->memo.store_steps.Note(applied.status(), dependencies_.runtime.clock.Now());
      }
      LDNN_ASSIGN_OR_RETURN(const ActionExecutor::Next next, applied);
      if (next == ActionExecutor::Next::kYield) {
        pass->yields = true;
        return OkStatus();
      }
      again = again || next == ActionExecutor::Next::kDecideAgain;
    }
    if (!again) break;
  }
  return OkStatus();
}

Result<bool> Reconciler::IsDeposed(const Pass& pass) {
  const int64_t epoch = pass.snapshot.job.status.execution.leader_epoch;
  if (epoch <= options_.leader_epoch) return false;
  bool forged = false;
  if (dependencies_.leads_now != nullptr) {
    LDNN_ASSIGN_OR_RETURN(forged, dependencies_.leads_now());
  } else {
    // A leader's epoch is a resourceVersion that is older than its writes to the job.
    const auto version = ParseInteger(pass.version.resource_version);
    forged = version.has_value() && epoch > *version;
  }
  if (forged) {
    LogWarning("controller",
               "status.execution.leaderEpoch is of no controller that leads, and is not heeded",
               {{"namespace", pass.name.namespace_name}, {"job", pass.name.name}});
  }
  return !forged;
}

Status Reconciler::WriteStatusIfChanged(Pass* pass) {
  if (pass->gone) return OkStatus();
  loader_.Refresh(pass);
  const Job& job = pass->snapshot.job;
  const bool deleted = !job.metadata.deletion_timestamp.empty();
  if (deleted || job.metadata.finalizers.empty() || IsLeftAlone(pass->snapshot)) return OkStatus();
  if (pass->held) return OkStatus();
  const JobStatus status = ComputeStatus(pass->snapshot);
  const auto differs = [&](const JobStatus& news) { return writer_.Differs(*pass, news); };
  if (!scheduler_.IsWriteDue(*pass, status, differs)) return OkStatus();
  return writer_.Write(pass, status);
}

Result<Json> Reconciler::Describe(const ObjectName& name) {
  Pass pass;
  pass.name = name;
  LDNN_RETURN_IF_ERROR(loader_.Load(&pass));
  loader_.Refresh(&pass);
  return Json{{"snapshot", SnapshotToJson(pass.snapshot)},
              {"policy", AskPolicies(pass.snapshot).policy->name},
              {"decision", ActionsToJson(Decide(pass.snapshot))}};
}

void Reconciler::WakeNext() {
  for (const ObjectName& next : queue_.NextAfterChange()) {
    if (wake_ != nullptr) wake_(next);
  }
}

Result<Duration> Reconciler::Reconcile(const ObjectName& name,
                                       std::optional<StoreBulkhead>* store_bulkhead) {
  Pass pass;
  pass.name = name;
  pass.may_wait = store_bulkhead == nullptr;
  if (!loader_.Load(&pass).ok()) {
    Drop(name);
    WakeNext();
    return kNever;
  }
  LDNN_ASSIGN_OR_RETURN(const bool deposed, IsDeposed(pass));
  if (deposed) return FromSeconds(options_.idle_tick_seconds);
  LDNN_RETURN_IF_ERROR(Gather(&pass));
  const Status applied = DecideAndApply(&pass);
  if (IsAccessFailure(applied)) pass.memory->store_refused = true;
  if (pass.store_bulkhead.has_value()) {
    scheduler_.NoteJoining(pass);
    *store_bulkhead = std::move(pass.store_bulkhead);
    return Duration::zero();
  }
  // Status shows what was observed even when an action failed.
  const Status shown = WriteStatusIfChanged(&pass);
  if (dependencies_.export_spans) TraceJob(&pass, dependencies_.export_spans);
  // A write by others (a suspension, a deletion) may free capacity as well.
  if (std::optional<ObjectVersion> now = cache_.VersionOf(name); now != pass.memory->left) {
    pass.memory->left = std::move(now);
    WakeNext();
  }
  LDNN_RETURN_IF_ERROR(applied);
  LDNN_RETURN_IF_ERROR(shown);
  if (pass.gone) Drop(name);
  if (IsForgettable(pass)) loader_.Drop(name);
  return pass.yields ? Duration::zero() : scheduler_.NextResync(pass);
}

}  // namespace lambdadnn
