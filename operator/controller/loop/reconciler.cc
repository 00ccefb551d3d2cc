// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/loop/reconciler.h"

#include <algorithm>

#include "common/base/planted_bug.h"
#include "common/base/text.h"
#include "common/telemetry/log.h"
#include "operator/api/conditions.h"
#include "operator/api/job_codec.h"
#include "operator/controller/apply/event_objects.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/status.h"
#include "operator/controller/loop/snapshot_json.h"
#include "operator/controller/observe/refused_fields.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// A pass that has decided this often has made progress; the rest is for the next one.
constexpr int kMaxSteps = 16;
// Looks at jobs that may change by themselves, of all of them together: their ticks grow with their
// number. What can be told (the object changed, a slice began or ended) brings a pass of its own.
constexpr double kMaxLooksPerSecond = 200;
// A write that was taken says, for as long, that the job is as this process knows it.
constexpr Duration kWriteConfirms = std::chrono::milliseconds(500);
// While passes come this late, progress is written only when what is shown is that old: what jobs
// wait for goes first.
constexpr Duration kBehind = std::chrono::seconds(1);
constexpr Duration kOldProgress = std::chrono::seconds(30);
// Writes of progress that nobody took can be made up for later, those of this long.
constexpr Duration kProgressBurst = std::chrono::seconds(1);
// Until the next look at a job that is held by one or a few others; longer the more there are.
constexpr Duration kMoment = std::chrono::milliseconds(50);
constexpr int kFew = 4;
constexpr Duration kLongestHold = std::chrono::seconds(1);
// Fields of status found out one by one to be refused.
constexpr int kMaxRefusals = 8;

// Nothing will change by itself.
constexpr Duration kNever = std::chrono::hours(24 * 365);

bool MayHaveFunctions(const Job& job) {
  return IsStarted(job) || job.status.profile.has_value() ||
         FindCondition(job, kConditionReady) != nullptr ||
         !job.metadata.deletion_timestamp.empty() || !job.status.completion_time.empty();
}

// Not started, or on the way to another plan.
// Something of the job starts or ends.
bool AnyInTransit(const Facts& facts) {
  return std::any_of(facts.instances.begin(), facts.instances.end(), [](const auto& entry) {
    const FunctionPhase phase = entry.second.instance.phase;
    return phase == FunctionPhase::kPending || phase == FunctionPhase::kTerminating;
  });
}

bool SeesQueue(const Job& job, const Platform& platform) {
  if (IsFinished(job) || job.spec.suspend || !job.metadata.deletion_timestamp.empty()) return false;
  return !IsStarted(job) || !job.status.plan.has_value() || NeedsReplan(job, platform);
}

// For the cluster to allow a plan.
bool WaitsForCluster(const Job& job) {
  const Condition* provisioned = FindCondition(job, kConditionProvisioned);
  return provisioned != nullptr && provisioned->reason == "ClusterTooSmall";
}

bool IsWaiting(const Job& job) {
  const Condition* ready = FindCondition(job, kConditionReady);
  return !IsStarted(job) && ready != nullptr && !HasCondition(job, kConditionSuspended);
}

}  // namespace

Reconciler::Reconciler(const ControllerDependencies& dependencies, const ControllerOptions& options,
                       ObjectCache& cache, std::function<void(const ObjectName&)> wake,
                       std::function<bool()> synced, std::function<Duration()> behind)
    : dependencies_(dependencies),
      options_(options),
      cache_(cache),
      queue_(dependencies_.runtime, dependencies_.backend, options_, cache_, std::move(synced)),
      wake_(std::move(wake)),
      behind_(std::move(behind)) {
  const bool expose = !options_.tenants || options_.tenants->expose_operator_credentials;
  if (!expose) {
    dependencies_.store_environment = WithoutCredentials(dependencies_.store_environment);
  }
}

std::shared_ptr<JobMemory> Reconciler::MemoryOf(const ObjectName& name, const std::string& uid) {
  std::shared_ptr<JobMemory> of_another;
  std::unique_lock lock(mutex_);
  auto& entry = memories_[name];
  if (entry.second == nullptr || entry.first != uid) {
    of_another = std::move(entry.second);
    entry = {uid, std::make_shared<JobMemory>()};
  }
  std::shared_ptr<JobMemory> memory = entry.second;
  lock.unlock();
  ForgetSlices(of_another.get());
  return memory;
}

void Reconciler::Drop(const ObjectName& name) {
  std::shared_ptr<JobMemory> memory;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = memories_.find(name); found != memories_.end()) {
      memory = std::move(found->second.second);
      memories_.erase(found);
    }
    in_progress_.erase(name);
    ticking_.erase(name);
    joining_.erase(name);
  }
  ForgetSlices(memory.get());
}

void Reconciler::ForgetSlices(const JobMemory* memory) {
  if (memory == nullptr) return;
  for (const auto& [invocation, slice] : memory->facts.slices) {
    dependencies_.slices.Forget(invocation);
  }
}

size_t Reconciler::remembered() const {
  const std::lock_guard lock(mutex_);
  return std::max(memories_.size(), in_progress_.size());
}

Status Reconciler::Load(Pass* pass) {
  pass->object = cache_.Get(pass->name);
  if (pass->object == nullptr) return NotFoundError("the job is gone");
  if (pass->memory == nullptr) pass->memory = MemoryOf(pass->name, UidOf(*pass->object));
  const JobMemory::Decoded& decoded = pass->memory->Decode(pass->object);
  pass->snapshot.job = decoded.job;
  pass->snapshot.problem = decoded.problem;
  pass->snapshot.unreadable = decoded.unreadable;
  if (options_.tenants.has_value() && decoded.problem.ok()) {
    UseOperatorStore(*options_.tenants, &pass->snapshot.job);
    std::optional<Status>& reach = pass->memory->reach;
    if (!reach.has_value()) reach = CheckReach(*options_.tenants, pass->snapshot.job);
    pass->snapshot.reach = *reach;
  }
  if (decoded.problem.ok() && pass->snapshot.reach.ok()) {
    pass->snapshot.reach = CheckStartCheckpoint(pass->snapshot.job);
  }
  pass->snapshot.options = &options_;
  pass->sees_queue = SeesQueue(pass->snapshot.job, options_.platform);
  return OkStatus();
}

void Reconciler::Refresh(Pass* pass) {
  JobSnapshot& snapshot = pass->snapshot;
  snapshot.now = dependencies_.runtime.clock.Now();
  snapshot.wall = dependencies_.runtime.clock.Wall();
  pass->memory->Begin(snapshot.job, snapshot.now, snapshot.wall);
  snapshot.facts = pass->memory->facts;
  snapshot.meter = pass->memory->meter;
  snapshot.platform = pass->memory->platform_view;
  snapshot.profile_platform = pass->memory->profile_view;
  if (pass->sees_queue) snapshot.queue = queue_.View(pass->name);
}

void Reconciler::Tell(const Pass& pass, Json event) {
  if (dependencies_.observer == nullptr) return;
  event["namespace"] = pass.name.namespace_name;
  dependencies_.observer->OnEvent(event);
}

// A plan is made of what the cluster allows at that moment; it is followed under what it allowed
// then, as far as this process knows.
Status Reconciler::LookAtPlatform(Pass* pass) {
  if (dependencies_.cluster == nullptr) return OkStatus();
  const Job& job = pass->snapshot.job;
  JobMemory& memory = *pass->memory;
  const bool plans =
      pass->sees_queue && (!job.status.plan.has_value() || NeedsReplan(job, options_.platform));
  const bool lives = !IsFinished(job) && job.metadata.deletion_timestamp.empty();
  if (!plans && (memory.platform_view != nullptr || !lives || !job.status.plan.has_value())) {
    return OkStatus();
  }
  const Result<ClusterLimits> limits =
      dependencies_.cluster->Limits(job.metadata.namespace_name, job.spec.runtime);
  if (!limits.ok()) {
    return plans ? limits.status().WithContext("cannot plan without the cluster's limits")
                 : OkStatus();
  }
  auto view = std::make_shared<PlatformView>();
  view->narrowed = WithinLimits(options_.platform, *limits);
  view->unknown = limits->unknown;
  memory.platform_view = std::move(view);
  if (memory.profile_view == nullptr || !AnyLiveInstance(memory.facts)) {
    memory.profile_view = memory.platform_view;
  }
  return OkStatus();
}

Status Reconciler::Gather(Pass* pass) {
  Refresh(pass);
  LDNN_RETURN_IF_ERROR(LookAtPlatform(pass));
  const Job& job = pass->snapshot.job;
  JobMemory& memory = *pass->memory;
  if (!MayHaveFunctions(job)) {
    memory.facts.instances_known = true;
    return OkStatus();
  }
  const auto news = [&](const Json& event) { Tell(*pass, event); };
  Result<std::vector<FunctionInstance>> instances = dependencies_.backend.List(IdentityOf(job));
  const Instant now = dependencies_.runtime.clock.Now();
  if (instances.ok()) {
    memory.ObserveInstances(*instances, job, ProfilePlatformOf(pass->snapshot), now, news);
  } else {
    // Decisions go on with what was known; slices are heard of by other ways.
    memory.facts.start_error = instances.status();
    const bool ending = !job.metadata.deletion_timestamp.empty();
    if (ending && !memory.facts.cleanup_since.has_value()) memory.facts.cleanup_since = now;
  }
  memory.ObserveSlices(dependencies_.slices.Poll(job.metadata.uid), job, options_.platform, now,
                       news);
  memory.ObserveKernels(dependencies_.slices.TakeKernels(job.metadata.uid));
  // A function was refused by the store: its environment may be what the Secret no longer says.
  if (!memory.facts.credentials_changed && memory.AnyRefused()) {
    memory.store_refused = true;
    memory.issued.reset();  // whatever was wrong with them
  }
  // What cannot be read is said by whoever needs it.
  if (memory.store_refused) (void)LookAtSecrets(pass);
  memory.facts.credentials_changed = memory.AnyRefusedWithOtherSecrets(HasOwnCredentials(*pass));
  Refresh(pass);
  return OkStatus();
}

Status Reconciler::DecideAndApply(Pass* pass) {
  for (int step = 0; step < kMaxSteps && !pass->gone; ++step) {
    Refresh(pass);
    pass->held = IsHeld(pass->snapshot);
    bool again = false;
    for (const Action& action : Decide(pass->snapshot)) {
      LDNN_RETURN_IF_ERROR(CheckWanted());
      if (!pass->may_wait && UsesStore(*pass, action)) {
        pass->store_lane = StoreLaneOf(pass->snapshot.job);
        return OkStatus();
      }
      LDNN_ASSIGN_OR_RETURN(const Next next, Apply(pass, action));
      if (next == Next::kYield) {
        pass->yields = true;
        return OkStatus();
      }
      again = again || next == Next::kDecideAgain;
    }
    if (!again) break;
  }
  return OkStatus();
}

std::string Reconciler::StoreLaneOf(const Job& job) {
  const StoreReference store = MakeStoreReference(job);
  return job.metadata.namespace_name + " " + (store.endpoint.empty() ? store.uri : store.endpoint) +
         " " + job.spec.object_store.credentials_secret;
}

Result<Reconciler::Next> Reconciler::Apply(Pass* pass, const Action& action) {
  return std::visit([&](const auto& one) { return Do(pass, one); }, action);
}

Result<bool> Reconciler::IsDeposed(const Pass& pass) {
  const int64_t epoch = pass.snapshot.job.status.execution.leader_epoch;
  if (epoch <= options_.leader_epoch) return false;
  bool forged = false;
  if (dependencies_.leads_now != nullptr) {
    LDNN_ASSIGN_OR_RETURN(forged, dependencies_.leads_now());
  } else {
    // A leader's epoch is a version of the API server from before it wrote the job's.
    const auto version = ParseInteger(ResourceVersionOf(*pass.object));
    forged = version.has_value() && epoch > *version;
  }
  if (forged) {
    LogWarning("controller",
               "status.execution.leaderEpoch is of no controller that leads, and is not heeded",
               {{"namespace", pass.name.namespace_name}, {"job", pass.name.name}});
  }
  return !forged;
}

Status Reconciler::CheckWanted() const {
  return abandoned_ ? CancelledError("this process is ending") : OkStatus();
}

Status Reconciler::ConfirmLead(Pass* pass) {
  LDNN_RETURN_IF_ERROR(CheckWanted());
  const Instant now = dependencies_.runtime.clock.Now();
  const bool known = cache_.Get(pass->name) == pass->object;
  const std::optional<Instant>& written = pass->memory->status_written;
  if (known && written.has_value() && now - *written < kWriteConfirms) return OkStatus();
  Result<Json> object = dependencies_.kube.Get(ServerlessTrainingJobType(), pass->name);
  if (object.status().code() == StatusCode::kNotFound) {
    cache_.Remove(pass->name, UidOf(*pass->object));
    pass->gone = true;
  }
  if (!object.ok()) return object.status().WithContext("cannot read job " + pass->name.name);
  const bool newer = ResourceVersionOf(*object) != ResourceVersionOf(*pass->object);
  if (!newer) return OkStatus();
  cache_.Put(*object);
  return AbortedError("job " + pass->name.name + " has changed; deciding again");
}

void Reconciler::ReadBack(Pass* pass) {
  Result<Json> object = dependencies_.kube.Get(ServerlessTrainingJobType(), pass->name);
  if (object.ok()) {
    cache_.Put(*object);
  } else if (object.status().code() == StatusCode::kNotFound) {
    cache_.Remove(pass->name, UidOf(*pass->object));
    pass->gone = true;
  }
}

Result<Json> Reconciler::PatchStatus(Pass* pass, Json patch) {
  const auto send = [&] {
    return dependencies_.kube.Patch(ServerlessTrainingJobType(), pass->name, patch,
                                    Subresource::kStatus);
  };
  Result<Json> written = send();
  RefusedFields& refused = pass->memory->refused_fields;
  // One answer may not name all of them.
  for (int attempt = 0; attempt < kMaxRefusals; ++attempt) {
    if (written.status().code() != StatusCode::kInvalidArgument) return written;
    if (!AddRefused(written.status().message(), patch, &refused)) return written;
    const std::string note =
        "the API server refuses a part of status, which is left out from now on; apply the CRD of "
        "this operator's version: " +
        written.status().message();
    LogWarning("controller", note, {{"job", pass->name.name}});
    if (dependencies_.record_event) {
      Condition refusal;
      refusal.type = kConditionDegraded;
      refusal.status = "True";
      refusal.reason = "StatusFieldRefused";
      refusal.message = note;
      dependencies_.record_event(MakeEvent(pass->snapshot.job, refusal));
    }
    if (!DropStatusFields(RefusedIn(patch, refused), &patch)) return *pass->object;
    written = send();
  }
  return written;
}

bool Reconciler::Differs(const Pass& pass, const JobStatus& status) const {
  if (!DiffersInSubstance(pass.snapshot.job.status, status)) return false;
  const RefusedFields& refused = pass.memory->refused_fields;
  if (refused.empty()) return true;
  // What is refused always differs.
  Json patch = MakeStatusPatch(*pass.object, status);
  if (!DropStatusFields(RefusedIn(patch, refused), &patch)) return false;
  return DropStatusFields({"progress", "usage", "summary"}, &patch);
}

Status Reconciler::WriteStatus(Pass* pass, const JobStatus& status) {
  LDNN_RETURN_IF_ERROR(CheckWanted());
  Json patch = MakeStatusPatch(*pass->object, status);
  const std::set<std::string> refused = RefusedIn(patch, pass->memory->refused_fields);
  if (!DropStatusFields(refused, &patch)) return OkStatus();
  patch["metadata"]["resourceVersion"] = ResourceVersionOf(*pass->object);
  if (Planted(PlantedBug::kStatusWithoutVersion)) patch.erase("metadata");
  const JobStatus before = pass->snapshot.job.status;
  Result<Json> written = PatchStatus(pass, std::move(patch));
  if (!written.ok()) {
    ReadBack(pass);
    return written.status().WithContext("cannot write the status of job " + pass->name.name);
  }
  cache_.Put(*std::move(written));
  LDNN_RETURN_IF_ERROR(Load(pass));
  pass->memory->status_written = dependencies_.runtime.clock.Now();
  pass->memory->progress_written = *pass->memory->status_written;
  RecordChanges(*pass, before, pass->snapshot.job.status);
  return OkStatus();
}

void Reconciler::RecordChanges(const Pass& pass, const JobStatus& before, const JobStatus& after) {
  for (const Condition& condition : ChangedConditions(before, after)) {
    // "Planned" has just said it.
    const bool begins = condition.reason == "FunctionsStarting" &&
                        FindCondition(before.conditions, condition.type) == nullptr;
    if (dependencies_.record_event && !begins) {
      dependencies_.record_event(MakeEvent(pass.snapshot.job, condition));
    }
    Json told = {{"type", "event"},
                 {"job", pass.name.name},
                 {"time", pass.memory->Time(pass.snapshot.now)},
                 {"condition", condition.type},
                 {"status", condition.status},
                 {"reason", condition.reason},
                 {"message", condition.message}};
    Tell(pass, std::move(told));
  }
}

bool Reconciler::AnyJoining(const Pass& pass) {
  const bool joins = IsJoining(pass.snapshot);
  const std::lock_guard lock(mutex_);
  if (joins) {
    joining_.insert(pass.name);
  } else {
    joining_.erase(pass.name);
  }
  return !joining_.empty();
}

Duration Reconciler::ProgressInterval(const Job& job) {
  const ObjectName name{job.metadata.namespace_name, job.metadata.name};
  const std::lock_guard lock(mutex_);
  if (job.status.phase == "Running" || job.status.phase == "Profiling" || IsWaiting(job)) {
    in_progress_.insert(name);
  } else {
    in_progress_.erase(name);
  }
  const double share =
      static_cast<double>(in_progress_.size()) / options_.max_progress_writes_per_second;
  return FromSeconds(std::max(options_.progress_seconds, share));
}

bool Reconciler::TakeProgressWrite(Instant now) {
  const std::lock_guard lock(mutex_);
  if (now < progress_write_) return false;
  const Duration each = FromSeconds(1 / options_.max_progress_writes_per_second);
  progress_write_ = std::max(progress_write_, now - kProgressBurst) + each;
  return true;
}

Status Reconciler::WriteStatusIfChanged(Pass* pass) {
  if (pass->gone) return OkStatus();
  Refresh(pass);
  const Job& job = pass->snapshot.job;
  const bool deleted = !job.metadata.deletion_timestamp.empty();
  if (deleted || job.metadata.finalizers.empty() || IsLeftAlone(pass->snapshot)) return OkStatus();
  if (pass->held) return OkStatus();
  const JobStatus status = ComputeStatus(pass->snapshot);
  const Duration since = pass->snapshot.now - pass->memory->progress_written;
  const bool behind = behind_ != nullptr && behind_() >= kBehind;
  const bool joins = IsJoining(pass->snapshot);
  const bool others_first = (AnyJoining(*pass) || behind) && since < kOldProgress;
  JobStatus news = status;
  // First all streams of all jobs, then who leads them.
  if (joins || others_first) news.execution.leader_epoch = job.status.execution.leader_epoch;
  const bool in_time = !joins && (!behind || since >= kOldProgress);
  const bool due = in_time && since >= ProgressInterval(job);
  const bool differs = Differs(*pass, news);
  if (!differs && !(due && TakeProgressWrite(pass->snapshot.now))) return OkStatus();
  return WriteStatus(pass, status);
}

Duration Reconciler::Tick(const Pass& pass) {
  const std::lock_guard lock(mutex_);
  ticking_.insert(pass.name);
  const double share = static_cast<double>(ticking_.size()) / kMaxLooksPerSecond;
  const double tick =
      AnyInTransit(pass.snapshot.facts) ? options_.starting_tick_seconds : options_.tick_seconds;
  return FromSeconds(std::max(tick, share));
}

Duration Reconciler::NextLook(const Pass& pass) {
  const Job& job = pass.snapshot.job;
  const Facts& facts = pass.snapshot.facts;
  if (pass.gone) return kNever;
  const bool deleted = !job.metadata.deletion_timestamp.empty();
  const bool finished = IsFinished(job);
  if (pass.held) {
    return std::min<Duration>(kLongestHold, kMoment * (1 + pass.snapshot.queue.undecided / kFew));
  }
  const bool waiting = !deleted && !finished && IsWaiting(job) && !AnyLiveInstance(facts);
  const bool resting = job.status.phase == "Suspended" || WaitsForCluster(job) ||
                       (facts.admission.has_value() && !facts.admission->ok());
  if (deleted || (finished ? AnyLiveInstance(facts) : !resting && !waiting)) return Tick(pass);
  {
    const std::lock_guard lock(mutex_);
    ticking_.erase(pass.name);
  }
  if (waiting) {
    const Duration longest = FromSeconds(options_.waiting_tick_seconds);
    if (!facts.start_again_at.has_value()) return longest;
    return std::clamp<Duration>(*facts.start_again_at - pass.snapshot.now,
                                FromSeconds(options_.tick_seconds), longest);
  }
  if (!finished) return FromSeconds(options_.idle_tick_seconds);
  const Duration tick = FromSeconds(options_.tick_seconds);
  Duration next = FromSeconds(options_.finished_tick_seconds);
  WallTime completed;
  if (!ParseRfc3339(job.status.completion_time, &completed)) return next;
  const Duration age = pass.snapshot.wall - completed;
  const Duration settle = FromSeconds(options_.cleanup_settle_seconds);
  if (age < settle) next = std::min(next, std::max(tick, settle - age));
  if (!job.spec.ttl_seconds_after_finished.has_value()) return next;
  return std::clamp<Duration>(FromSeconds(*job.spec.ttl_seconds_after_finished) - age, tick, next);
}

Result<Json> Reconciler::Describe(const ObjectName& name) {
  Pass pass;
  pass.name = name;
  LDNN_RETURN_IF_ERROR(Load(&pass));
  Refresh(&pass);
  return Json{{"snapshot", SnapshotToJson(pass.snapshot)},
              {"decision", ActionsToJson(Decide(pass.snapshot))}};
}

void Reconciler::WakeNext() {
  for (const ObjectName& next : queue_.NextAfterChange()) {
    if (wake_ != nullptr) wake_(next);
  }
}

Result<Duration> Reconciler::Reconcile(const ObjectName& name, std::string* store_lane) {
  Pass pass;
  pass.name = name;
  pass.may_wait = store_lane == nullptr;
  if (!Load(&pass).ok()) {
    Drop(name);
    WakeNext();
    return kNever;
  }
  LDNN_ASSIGN_OR_RETURN(const bool deposed, IsDeposed(pass));
  if (deposed) return FromSeconds(options_.idle_tick_seconds);
  LDNN_RETURN_IF_ERROR(Gather(&pass));
  const Status applied = DecideAndApply(&pass);
  if (IsAccessFailure(applied)) pass.memory->store_refused = true;
  if (!pass.store_lane.empty()) {
    (void)AnyJoining(pass);
    *store_lane = std::move(pass.store_lane);
    return Duration::zero();
  }
  // What was observed is shown even when something could not be done.
  const Status shown = WriteStatusIfChanged(&pass);
  // Also what others wrote may let somebody go: a suspension, a deletion.
  if (std::shared_ptr<const Json> now = cache_.Get(name); now != pass.memory->left) {
    pass.memory->left = std::move(now);
    WakeNext();
  }
  LDNN_RETURN_IF_ERROR(applied);
  LDNN_RETURN_IF_ERROR(shown);
  if (pass.gone) Drop(name);
  return pass.yields ? Duration::zero() : NextLook(pass);
}

}  // namespace lambdadnn
