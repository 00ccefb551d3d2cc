// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/decide.h"

#include <algorithm>

#include "operator/api/pause.h"
#include "operator/controller/admission/support_limits.h"
#include "operator/controller/decide/status.h"

namespace lambdadnn {
namespace {

// accept, profile, plan, start.
constexpr int kEarlySteps = 4;

bool HasFinalizer(const Job& job) {
  const auto& finalizers = job.metadata.finalizers;
  return std::find(finalizers.begin(), finalizers.end(), kCleanupFinalizer) != finalizers.end();
}

// As batch/v1 counts them for activeDeadlineSeconds: from status.startTime, and so anew after each
// suspension. What a plan counts against its objective goes on (ActiveSeconds).
double SecondsSinceStart(const Job& job, WallTime wall) {
  WallTime start;
  const bool started = IsStarted(job) && ParseRfc3339(job.status.start_time, &start);
  return started ? ToSeconds(wall - start) : 0;
}

// For good; a store that has given some before may only be being mended.
bool IsRefusedCredentials(const JobSnapshot& snapshot) {
  const std::optional<Instant>& since = snapshot.facts.credentials_refused_since;
  if (!since.has_value()) return false;
  return snapshot.job.status.store_credentials != kPerJobCredentials ||
         snapshot.now - *since >= FromSeconds(snapshot.options->credentials_seconds);
}

std::vector<Action> DecideAdmission(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  if (HasCondition(job, kConditionSuspended)) {
    WriteDecision resume;
    resume.why = "resume";
    resume.conditions.push_back(
        MakeCondition(kConditionSuspended, false, "Resumed", "spec.suspend is no longer set"));
    return {resume};
  }
  if (!snapshot.facts.admission.has_value()) return {CheckAdmission{}};
  if (IsRefusedCredentials(snapshot)) {
    return {FailJob("NoJobCredentials", snapshot.facts.credentials_refused.message())};
  }
  if (!snapshot.facts.admission->ok()) return {CheckAdmission{}};
  if (!HasCondition(job, kConditionAccepted)) {
    WriteDecision accept;
    accept.why = "accept";
    accept.early = true;
    accept.conditions.push_back(MakeCondition(kConditionAccepted, true, "SpecValid",
                                              "the spec is valid and the object store answers"));
    return {accept};
  }
  const bool probed = job.status.store_capabilities || snapshot.facts.store_capabilities;
  return probed && snapshot.facts.credentials_known ? std::vector<Action>{}
                                                    : std::vector<Action>{CheckAdmission{}};
}

std::vector<Action> DecideStep(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  if (IsLeftAlone(snapshot)) return {};
  if (!job.metadata.deletion_timestamp.empty()) {
    return HasFinalizer(job) ? DecideDeletion(snapshot) : std::vector<Action>{};
  }
  if (IsFinished(job)) return DecideFinished(snapshot);
  if (!HasFinalizer(job)) return {AddFinalizer{}};
  if (IsEnding(job)) return DecideEnding(snapshot);
  if (!snapshot.problem.ok()) return {FailJob("InvalidSpec", snapshot.problem.message())};
  if (!snapshot.reach.ok()) return {FailJob("StoreNotAllowed", snapshot.reach.message())};
  if (const auto unsupported = FindUnsupported(job.spec, snapshot.options->backend);
      unsupported.has_value()) {
    return {FailJob(unsupported->reason, unsupported->message)};
  }
  if (!snapshot.facts.instances_known) return {};
  const std::optional<double>& limit = job.spec.active_deadline_seconds;
  if (limit.has_value() && SecondsSinceStart(job, snapshot.wall) >= *limit) {
    return {FailJob("DeadlineExceeded", "the job was active for spec.activeDeadlineSeconds = " +
                                            std::to_string(static_cast<int64_t>(*limit)) +
                                            " seconds; raise it or suspend the job in time")};
  }
  if (job.spec.suspend) return DecideSuspend(snapshot);
  if (std::vector<Action> actions = DecideAdmission(snapshot); !actions.empty()) return actions;
  if (!job.status.profile.has_value()) return DecideProfile(snapshot);
  if (!job.status.plan.has_value()) return DecidePlan(snapshot);
  if (NeedsReplan(job, snapshot.options->platform)) return DecideReplan(snapshot);
  return DecideRun(snapshot);
}

// The early step that is all of `actions`, if it is.
const WriteDecision* EarlyStep(const std::vector<Action>& actions) {
  if (actions.size() != 1) return nullptr;
  const auto* write = std::get_if<WriteDecision>(&actions.front());
  return write != nullptr && write->early ? write : nullptr;
}

template <typename Field>
void Replace(const std::optional<Field>& newer, std::optional<Field>* field) {
  if (newer.has_value()) *field = newer;
}

// Of what early steps set.
void Append(const WriteDecision& next, WriteDecision* write) {
  write->why += ", " + next.why;
  Replace(next.plan, &write->plan);
  Replace(next.plan_history, &write->plan_history);
  Replace(next.profile, &write->profile);
  Replace(next.execution, &write->execution);
  Replace(next.start_time, &write->start_time);
  Replace(next.room, &write->room);
  write->conditions.insert(write->conditions.end(), next.conditions.begin(), next.conditions.end());
}

}  // namespace

Action FailJob(const std::string& reason, const std::string& message) {
  WriteDecision fail;
  fail.why = "fail";
  fail.conditions.push_back(MakeCondition(kConditionFailureTarget, true, reason, message));
  return fail;
}

std::vector<Action> StopSlices(const JobSnapshot& snapshot, StopManner manner,
                               bool (*selected)(const SliceFact&, const Round&),
                               const Round& round) {
  const ControllerOptions& options = *snapshot.options;
  std::vector<Action> actions;
  for (const auto& [invocation, slice] : snapshot.facts.slices) {
    if (!selected(slice, round) || !MayRun(slice, snapshot.facts)) continue;
    const auto older = [&](const std::optional<Instant>& since, double seconds) {
      return since.has_value() && snapshot.now - *since >= FromSeconds(seconds);
    };
    if (older(slice.stop_sent, options.stop_seconds)) {
      actions.push_back(DeleteFunction{slice.instance_uid, "it does not stop its slice"});
      continue;
    }
    if (slice.stop_sent.has_value()) continue;
    const bool graceful = manner == StopManner::kGraceful &&
                          slice.role.kind != RoleKind::kProfile &&
                          !older(slice.graceful_stop_sent, options.graceful_stop_seconds);
    if (!graceful) {
      actions.push_back(StopSlice{invocation, false});
    } else if (!slice.graceful_stop_sent.has_value()) {
      actions.push_back(StopSlice{invocation, true});
    }
  }
  return actions;
}

bool IsLeftAlone(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  if (!IsOurs(job, *snapshot.options)) return true;
  return (IsPaused(job) || !snapshot.unreadable.ok()) && job.metadata.deletion_timestamp.empty();
}

bool IsHeld(const JobSnapshot& snapshot) {
  return snapshot.queue.unsettled && snapshot.job.status.conditions.empty();
}

std::vector<Action> Decide(const JobSnapshot& snapshot) {
  std::vector<Action> actions = DecideStep(snapshot);
  const WriteDecision* const first = EarlyStep(actions);
  if (first == nullptr || IsStarted(snapshot.job)) return actions;
  if (IsHeld(snapshot)) return {};
  WriteDecision together = *first;
  JobSnapshot after = snapshot;
  for (int steps = 1; steps < kEarlySteps && !IsStarted(after.job); ++steps) {
    after.job.status = ComputeStatus(snapshot, together);
    const std::vector<Action> more = DecideStep(after);
    const WriteDecision* const next = EarlyStep(more);
    if (next == nullptr) break;
    Append(*next, &together);
  }
  return {together};
}

}  // namespace lambdadnn
