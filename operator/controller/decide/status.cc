// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/status.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "common/base/utf8.h"
#include "operator/api/conditions.h"
#include "operator/api/job_id.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/peers_condition.h"
#include "operator/controller/observe/pending_functions.h"
#include "operator/controller/planning/planning.h"
#include "operator/controller/planning/unmeasured_plan.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

// Thirty years.
constexpr double kLongestEstimateSeconds = 1e9;

// Longer than a store takes that is restarted.
constexpr Duration kStoreFailureTold = std::chrono::seconds(5);

// The condition stays although training continues.
bool IsSticky(const Condition& degraded) {
  const ReasonRow* const row = FindReason(degraded.reason);
  return row != nullptr && row->sticky;
}

bool AnySliceRuns(const Observations& observed) {
  for (const auto& [invocation, slice] : observed.slices) {
    const bool training = slice.role.kind != RoleKind::kProfile;
    if (training && MayRun(slice, observed) && slice.phase == SlicePhase::kRunning) return true;
  }
  return false;
}

std::string PhaseOf(const JobSnapshot& snapshot, const Job& job) {
  if (HasCondition(job, kConditionComplete)) return "Complete";
  if (HasCondition(job, kConditionFailed)) return "Failed";
  if (HasCondition(job, kConditionSuspended) && job.spec.suspend) return "Suspended";
  if (job.status.start_time.empty()) return "Pending";
  if (job.spec.suspend && !IsEnding(job)) return "Suspending";
  const bool unmeasured = IsUnmeasured(job) && !LeavesUnmeasured(job);
  if (!job.status.profile.has_value() && !unmeasured) return "Profiling";
  if (!job.status.plan.has_value()) return "Planning";
  // Nothing starts any more; the job ends as soon as its results are stored.
  if (IsEnding(job)) return "Running";
  return AnySliceRuns(*snapshot.observations) || IsJoining(snapshot) ? "Running" : "Starting";
}

void Set(JobStatus* status, const JobSnapshot& snapshot, Condition condition) {
  condition.observed_generation = snapshot.job.metadata.generation;
  SetCondition(&status->conditions, std::move(condition), snapshot.wall);
}

// What is left of a job that has capacity for its plan, in time and in money.
void AddEstimate(const JobSnapshot& snapshot, bool ending, JobStatus* status) {
  ProgressStatus& progress = status->progress;
  progress.estimated_remaining_seconds.reset();
  progress.estimated_cost.reset();
  if (status->start_time.empty() || !status->completion_time.empty() || ending) return;
  const Plan& plan = *status->plan;
  OnlineEstimate estimate = snapshot.observations->estimate;
  // The plan may be of this very decision.
  if (status->profile && plan.predicted.known()) {
    estimate.Use(plan, *status->profile, status->execution.corrections);
  }
  double seconds = 0;
  if (estimate.known()) {
    seconds = estimate.Remaining(progress.iteration).seconds;
  } else if (progress.samples_per_second > 0) {
    seconds = static_cast<double>(plan.iterations - progress.iteration) * plan.global_batch_size /
              progress.samples_per_second;
  } else {
    return;
  }
  // A rate that has only begun to be measured says nothing.
  if (!(seconds >= 0 && seconds < kLongestEstimateSeconds)) return;
  progress.estimated_remaining_seconds = std::ceil(seconds);
  const Platform& platform = snapshot.options->platform;
  if (AllZero(platform.prices)) return;
  const double cost =
      snapshot.meter.Spent() + RemainingCost(*status, platform, progress.iteration, seconds);
  if (std::isfinite(cost)) progress.estimated_cost = std::max(0.0, cost);
}

void AddProgress(const JobSnapshot& snapshot, JobStatus* status) {
  ProgressStatus& progress = status->progress;
  if (!status->plan.has_value()) return;
  const Plan& plan = *status->plan;
  progress.iterations = plan.iterations;
  progress.iteration =
      std::max(snapshot.observations->iteration, status->execution.first_iteration);
  if (plan.iterations_per_epoch > 0) {
    progress.epoch = progress.iteration / plan.iterations_per_epoch;
  }
  progress.loss = snapshot.meter.loss.has_value() ? snapshot.meter.loss : progress.loss;
  if (!snapshot.meter.test.empty()) progress.test = snapshot.meter.test;
  progress.samples_per_second = snapshot.meter.samples_per_second;
  progress.progress_percentage =
      plan.iterations > 0 ? static_cast<int>(100 * progress.iteration / plan.iterations) : 0;
}

// Why functions of these groups cannot be used, if there is a reason beside that they take their
// time. Of those that are not ready, the platform's word comes first.
std::optional<PendingObstacle> FindObstacle(const JobSnapshot& snapshot, bool all_ready,
                                            const std::set<std::string>& groups) {
  const Status& key = snapshot.memo->key_error;
  if (!key.ok()) return PendingObstacle{Reason::kJobKeyUnusable, key.message()};
  std::optional<PendingObstacle> obstacle;
  if (!all_ready) obstacle = FindPendingObstacle(*snapshot.observations, groups);
  return obstacle ? obstacle : FindUnreachable(*snapshot.observations, groups, snapshot.now);
}

// Of a job that waits for capacity; false = it does not.
bool AddWaiting(const JobSnapshot& snapshot, JobStatus* status) {
  const Condition* ready = FindCondition(status->conditions, kConditionReady);
  const bool waited = ready != nullptr && ready->status == "False";  // or was suspended
  if (!status->start_time.empty()) {
    if (status->plan.has_value()) return false;
    const auto obstacle = FindObstacle(snapshot, false, {kProfileGroup});
    if (!waited && !obstacle.has_value()) return false;
    const std::string starting = "the functions that measure the model are starting";
    Set(status, snapshot,
        MakeCondition(kConditionReady, false,
                      obstacle ? obstacle->reason : Reason::kFunctionsStarting,
                      obstacle ? starting + ": " + obstacle->message : starting));
    return false;
  }
  const Condition* accepted = FindCondition(status->conditions, kConditionAccepted);
  if (accepted == nullptr || accepted->status != "True") return false;
  Job job = snapshot.job;
  job.status = *status;
  const bool profiled = job.spec.profile.has_value() || job.status.profile.has_value();
  if (!job.status.plan.has_value() && profiled) return false;
  const std::optional<CapacityWait> wait =
      FindCapacityWait(job, snapshot.observations->queue, snapshot.options->platform);
  if (wait.has_value()) Set(status, snapshot, ConditionOf(*wait));
  return wait.has_value();
}

// Of a job that has no functions any more, or is about to release them, for tools that read any
// object by the rules of kstatus: Ready is True of a complete job, which is what was asked for;
// Stalled is True of a failed one; else Ready is False with the reason for the release.
void EndReady(const JobSnapshot& snapshot, JobStatus* status) {
  if (IsConditionTrue(status->conditions, kConditionComplete)) {
    Condition ready = *FindCondition(status->conditions, kConditionComplete);
    ready.type = kConditionReady;
    return Set(status, snapshot, std::move(ready));
  }
  const bool has_failed = IsConditionTrue(status->conditions, kConditionFailed);
  if (has_failed) {
    Condition stalled = *FindCondition(status->conditions, kConditionFailed);
    stalled.type = kConditionStalled;
    Set(status, snapshot, std::move(stalled));
  }
  if (FindCondition(status->conditions, kConditionReady) == nullptr && !has_failed) return;
  for (const char* type : {kConditionFailed, kConditionSuccessCriteriaMet, kConditionFailureTarget,
                           kConditionSuspended}) {
    if (!IsConditionTrue(status->conditions, type)) continue;
    Condition ready = MakeCondition(kConditionReady, false, Reason::kNotRunning,
                                    "the job's functions are released");
    ready.reason = FindCondition(status->conditions, type)->reason;
    Set(status, snapshot, std::move(ready));
    return;
  }
}

// Of functions that are not there, by what the backend said when it was asked for them.
Reason ReasonOfMissing(const Memo& memo) {
  const StatusCode code = memo.start_error.code();
  if (code == StatusCode::kFailedPrecondition) return Reason::kFunctionNotCreated;
  if (code != StatusCode::kResourceExhausted) return Reason::kFunctionsStarting;
  return memo.refused_by_quota ? Reason::kQuotaExceeded : Reason::kWaitingForCapacity;
}

void AddFunctions(const JobSnapshot& snapshot, bool ending, JobStatus* status) {
  status->workers_desired = 0;
  status->workers_ready = 0;
  const std::string& phase = status->phase;
  if (phase == "Suspended" || phase == "Complete" || phase == "Failed" || ending) {
    return EndReady(snapshot, status);
  }
  if (AddWaiting(snapshot, status) || !status->plan.has_value()) return;
  status->workers_desired = status->plan->functions;
  const auto ready =
      ReadyInstances(*snapshot.observations, WorkersGroupName(status->plan->revision));
  status->workers_ready = static_cast<int>(ready.size());
  const bool all = status->workers_ready >= status->workers_desired;
  std::string message = std::to_string(status->workers_ready) + " of " +
                        std::to_string(status->workers_desired) + " workers are ready";
  if (!snapshot.memo->start_error.ok()) message += ": " + snapshot.memo->start_error.message();
  Reason missing = ReasonOfMissing(*snapshot.memo);
  const int revision = status->plan->revision;
  const auto obstacle =
      FindObstacle(snapshot, all, {WorkersGroupName(revision), ServersGroupName(revision)});
  if (obstacle.has_value()) {
    missing = obstacle->reason;
    message += ": " + obstacle->message;
  }
  const bool usable = all && !obstacle.has_value();
  Set(status, snapshot,
      MakeCondition(kConditionReady, usable, usable ? Reason::kFunctionsReady : missing, message));
}

// What needs the store is tried again for ever: that the job waits for it is seen here.
void AddStoreFailure(const JobSnapshot& snapshot, JobStatus* status) {
  const Memo& memo = *snapshot.memo;
  const Attempts& steps = memo.store_steps;
  const bool is_accepted = IsConditionTrue(status->conditions, kConditionAccepted);
  if (!steps.failing_since.has_value() || !is_accepted || !memo.credentials_refused.ok()) return;
  if (snapshot.now - *steps.failing_since < kStoreFailureTold) return;
  Set(status, snapshot,
      MakeCondition(kConditionDegraded, true, Reason::kStoreNotUsable,
                    steps.error.message() + "; it is tried again"));
}

// Without a Ready tools that know no more of the object than kstatus would take it for done.
void BeginReady(const JobSnapshot& snapshot, JobStatus* status) {
  if (FindCondition(status->conditions, kConditionReady) != nullptr) return;
  Condition ready = MakeCondition(kConditionReady, false, Reason::kFunctionsStarting,
                                  "no function has been started yet");
  ready.status = "Unknown";
  Set(status, snapshot, std::move(ready));
}

void AddRunning(const JobSnapshot& snapshot, bool ending, JobStatus* status) {
  const bool running = !ending && (AnySliceRuns(*snapshot.observations) || IsJoining(snapshot));
  const bool was = FindCondition(status->conditions, kConditionRunning) != nullptr;
  if (!running && !was) return;
  Reason reason = running ? Reason::kSlicesRunning : Reason::kNotRunning;
  if (!running && (status->phase == "Starting")) reason = Reason::kBetweenSlices;
  Set(status, snapshot,
      MakeCondition(kConditionRunning, running, reason,
                    running ? "every role works on its slice" : "no slice is running"));
}

void AddAdmission(const JobSnapshot& snapshot, JobStatus* status) {
  const std::optional<Status>& admission = snapshot.memo->admission;
  if (!admission.has_value() || admission->ok()) return;
  Set(status, snapshot,
      MakeCondition(kConditionAccepted, false,
                    snapshot.memo->functions_refused ? Reason::kUnsupportedByCluster
                                                     : Reason::kStoreNotUsable,
                    admission->message()));
}

}  // namespace

bool IsJoining(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const Observations& observed = *snapshot.observations;
  const Memo& memo = *snapshot.memo;
  const std::optional<Round> round = CurrentRound(job);
  const std::vector<BoundFunction>& functions = job.status.execution.functions;
  if (!HasCondition(job, kConditionRunning) || !round.has_value() || functions.empty()) {
    return false;
  }
  if (!observed.instances_known) return true;
  for (const BoundFunction& function : functions) {
    if (IsGone(observed, function.uid)) return false;
  }
  bool asked = false;
  for (const auto& [invocation, slice] : observed.slices) {
    if (!InRound(slice, *round) || slice.phase == SlicePhase::kRunning) continue;
    const bool waits =
        slice.phase == SlicePhase::kStarting &&
        snapshot.now - slice.started < FromSeconds(snapshot.options->silence_seconds);
    if (!waits) return false;
    asked = true;
  }
  return asked || memo.records_read != *round;
}

JobStatus ComputeStatus(const JobSnapshot& snapshot) {
  return ComputeStatus(snapshot, WriteDecision{});
}

JobStatus ComputeStatus(const JobSnapshot& snapshot, const WriteDecision& decision) {
  Job job = snapshot.job;
  JobStatus& status = job.status;
  if (decision.plan.has_value()) status.plan = decision.plan;
  if (decision.plan_history.has_value()) status.plan_history = *decision.plan_history;
  if (decision.profile.has_value()) status.profile = decision.profile;
  if (decision.execution.has_value()) status.execution = *decision.execution;
  if (decision.start_time.has_value()) status.start_time = *decision.start_time;
  if (decision.completion_time.has_value()) status.completion_time = *decision.completion_time;
  if (decision.model_uri.has_value()) status.model_uri = *decision.model_uri;
  if (decision.model_digest.has_value()) status.model_digest = *decision.model_digest;
  if (decision.best_model.has_value()) status.best_model = decision.best_model;
  for (const Condition& condition : decision.conditions) Set(&status, snapshot, condition);

  status.observed_generation = snapshot.job.metadata.generation;
  status.usage = snapshot.meter.usage;
  if (IsFinished(snapshot.job)) return status;  // final but for late clean-up
  status.execution.leader_epoch = snapshot.options->leader_epoch;
  status.execution.job_id = JobIdOf(job);
  status.execution.job_uid = job.metadata.uid;
  AddAdmission(snapshot, &status);
  if (!status.store_capabilities.has_value())
    status.store_capabilities = snapshot.memo->store_capabilities;
  if (!snapshot.memo->store_credentials.empty()) {
    status.store_credentials = snapshot.memo->store_credentials;
    status.store_credentials_message = RepairUtf8(snapshot.memo->store_credentials_message);
  }
  if (!snapshot.memo->credentials_refused.ok()) {
    Set(&status, snapshot,
        MakeCondition(kConditionDegraded, true, Reason::kCredentialsRefused,
                      snapshot.memo->credentials_refused.message()));
  }
  const bool ending = IsEnding(job);
  if (!ending) AddStoreFailure(snapshot, &status);
  status.phase = PhaseOf(snapshot, job);
  AddProgress(snapshot, &status);
  if (status.plan.has_value()) AddEstimate(snapshot, ending, &status);
  AddFunctions(snapshot, ending, &status);
  BeginReady(snapshot, &status);
  AddRunning(snapshot, ending, &status);
  if (const auto peers = PeersConditionOf(snapshot, status); peers.has_value()) {
    Set(&status, snapshot, *peers);
  }
  // The job has recovered once it is beyond the iteration where this round began, or waited for a
  // function that was replaced.
  const Condition* degraded = FindCondition(status.conditions, kConditionDegraded);
  const bool told_now = FindCondition(decision.conditions, kConditionDegraded) != nullptr;
  const int64_t broken_at = std::max(status.execution.first_iteration, snapshot.memo->rejoined_at);
  if (degraded != nullptr && degraded->status == "True" && status.phase == "Running" && !told_now &&
      !IsSticky(*degraded) && snapshot.observations->iteration > broken_at) {
    Set(&status, snapshot,
        MakeCondition(kConditionDegraded, false, Reason::kRecovered, "training goes on"));
  }
  return status;
}

int PlaceInQueue(const JobSnapshot& snapshot, const JobStatus& status) {
  const QueueView& queue = snapshot.observations->queue;
  const Condition* ready = FindCondition(status.conditions, kConditionReady);
  const bool waits = ready != nullptr && HasReason(*ready, Reason::kWaitingForCapacity);
  return waits && queue.limited && queue.known ? queue.place() : 0;
}

bool IsPlaceNews(int told, int now) { return (told == 1) != (now == 1); }

bool DiffersInSubstance(const JobStatus& a, const JobStatus& b, bool place_is_news) {
  JobStatus left = a;
  left.progress = b.progress;
  left.usage = b.usage;
  for (Condition& condition : left.conditions) {
    const Condition* other = FindCondition(b.conditions, condition.type);
    const bool still_waits = HasReason(condition, Reason::kWaitingForCapacity) &&
                             other != nullptr && other->reason == condition.reason;
    if (still_waits && !place_is_news) condition.message = other->message;
  }
  return !(left == b);
}

std::vector<Condition> ChangedConditions(const JobStatus& before, const JobStatus& after) {
  std::vector<Condition> changed;
  for (const Condition& condition : after.conditions) {
    const Condition* old = FindCondition(before.conditions, condition.type);
    const bool same =
        old != nullptr && old->status == condition.status && old->reason == condition.reason;
    if (!same) changed.push_back(condition);
  }
  return changed;
}

}  // namespace lambdadnn
