// SPDX-License-Identifier: Apache-2.0
// The end of a job: whatever the outcome, functions are released, the report is written, working
// objects are deleted, and only then does the job count as Complete or Failed.
#include "common/base/text.h"
#include "common/base/time_text.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/gather_needs.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

bool Every(const SliceFact&, const Round&) { return true; }

// They have failed for too long.
bool IsGivenUp(const JobSnapshot& snapshot, const Attempts& attempts) {
  return attempts.failing_since.has_value() &&
         snapshot.now - *attempts.failing_since > FromSeconds(snapshot.options->cleanup_seconds);
}

// Functions first: nothing may be written after the clean-up. Empty once none is left.
std::vector<Action> ReleaseFunctions(const JobSnapshot& snapshot) {
  const Observations& observed = *snapshot.observations;
  if (AnyLiveInstance(observed)) {
    std::vector<Action> actions = StopSlices(snapshot, StopManner::kAtOnce, Every, Round{});
    actions.push_back(DeleteAllGroups{});
    return actions;
  }
  return {};
}

bool WantsCleanStore(const Job& job, bool success) {
  const CleanupPolicy policy = job.spec.cleanup_policy;
  return policy == CleanupPolicy::kAlways || (policy == CleanupPolicy::kOnSuccess && success);
}

// Seconds since a finished job's completion.
double FinishedSeconds(const JobSnapshot& snapshot) {
  WallTime completed;
  if (!ParseRfc3339(snapshot.job.status.completion_time, &completed)) return 0;
  return ToSeconds(snapshot.wall - completed);
}

// Whether a job that is being deleted may have objects that were written after its clean-up. A
// clean-up long enough after the functions' end has deleted those; one just after it has not.
bool MayHoldLateObjects(const JobSnapshot& snapshot) {
  if (snapshot.memo->cleaned_again) return false;
  const double since_cleaned = ToSeconds(snapshot.now - *snapshot.memo->cleaned_at);
  return !IsFinished(snapshot.job) ||
         FinishedSeconds(snapshot) - since_cleaned < snapshot.options->cleanup_settle_seconds;
}

// A job that never started has nothing in the store, and perhaps no store either.
bool TouchedStore(const JobSnapshot& snapshot) {
  return HasCondition(snapshot.job, kConditionAccepted) ||
         snapshot.job.status.profile.has_value() || !snapshot.observations->slices.empty();
}

bool LeavesObjects(const JobSnapshot& snapshot) {
  const Memo& memo = *snapshot.memo;
  return TouchedStore(snapshot) && !memo.exchange_cleaned && IsGivenUp(snapshot, memo.cleanup);
}

bool LeavesFunctions(const JobSnapshot& snapshot) {
  const Memo& memo = *snapshot.memo;
  return !memo.job_key_deleted && IsGivenUp(snapshot, memo.release);
}

// Degraded for this reason, and not for another one, which does not tell what is left.
bool IsTold(const Job& job, Reason incomplete) {
  return HasCondition(job, kConditionDegraded) &&
         HasReason(*FindCondition(job, kConditionDegraded), incomplete);
}

struct LeftOver {
  Reason reason;
  std::string message;  // and where it is
};

// What was given up; nullopt = nothing.
std::optional<LeftOver> FindLeftOver(const JobSnapshot& snapshot) {
  const Memo& memo = *snapshot.memo;
  std::vector<std::string> left;
  if (LeavesFunctions(snapshot)) {
    left.push_back(
        "functions or secrets may be left where functions run, and the operator goes on "
        "trying to delete them: " +
        memo.release.error.message());
  }
  if (LeavesObjects(snapshot)) {
    left.push_back("objects may be left under " + MakeStoreReference(snapshot.job).uri + "/" +
                   JobPrefix(snapshot.job) + ": " + memo.cleanup.error.message() +
                   "; delete them once the store answers again");
  }
  if (left.empty()) return std::nullopt;
  return LeftOver{
      LeavesFunctions(snapshot) ? Reason::kReleaseIncomplete : Reason::kCleanupIncomplete,
      Join(left, ". ")};
}

Condition Incomplete(const LeftOver& left) {
  return MakeCondition(kConditionDegraded, true, left.reason, left.message);
}

}  // namespace

std::vector<Action> DecideEnding(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const Observations& observed = *snapshot.observations;
  const Memo& memo = *snapshot.memo;
  const bool success = HasCondition(job, kConditionSuccessCriteriaMet);
  // What cannot be released keeps no report from being written.
  const bool releases = !IsGivenUp(snapshot, memo.release);
  if (releases) {
    if (!observed.instances_known) return {};
    if (std::vector<Action> actions = ReleaseFunctions(snapshot); !actions.empty()) return actions;
  }
  if (TouchedStore(snapshot) && !IsGivenUp(snapshot, memo.cleanup)) {
    if (!memo.report_written) return {WriteReport{}};
    if (WantsCleanStore(job, success) && !memo.exchange_cleaned) return {CleanUpStore{!success}};
  }
  if (!memo.job_key_deleted && releases) return {DeleteJobKey{}};

  WriteDecision end;
  end.completion_time = FormatRfc3339Millis(snapshot.wall);
  if (success) {
    end.why = "complete";
    end.conditions.push_back(MakeCondition(kConditionComplete, true, Reason::kTrainingFinished,
                                           "the model is trained; see status.model"));
  } else {
    Condition failed = *FindCondition(job, kConditionFailureTarget);
    failed.type = kConditionFailed;
    end.why = "failed";
    end.conditions.push_back(std::move(failed));
  }
  if (const auto left = FindLeftOver(snapshot); left.has_value()) {
    end.conditions.push_back(Incomplete(*left));
  }
  return {end};
}

bool IsPastLateCleanup(const JobSnapshot& snapshot) {
  return FinishedSeconds(snapshot) >= snapshot.options->cleanup_late_seconds;
}

std::vector<Action> DecideFinished(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  std::vector<Action> actions;
  for (const auto& [invocation, slice] : snapshot.observations->slices) {
    actions.push_back(ForgetSlice{invocation});
  }
  if (!actions.empty()) return actions;
  if (snapshot.observations->instances_known && AnyLiveInstance(*snapshot.observations)) {
    return {DeleteAllGroups{}};
  }
  if (IsTold(job, Reason::kReleaseIncomplete)) {
    if (!snapshot.memo->job_key_deleted) return {DeleteJobKey{}};
    WriteDecision released;
    released.why = "released";
    released.conditions.push_back(MakeCondition(kConditionDegraded, false, Reason::kRecovered,
                                                "no function and no secret of the job is left"));
    return {released};
  }
  const ControllerOptions& options = *snapshot.options;
  const double age = FinishedSeconds(snapshot);
  const bool success = HasCondition(job, kConditionComplete);
  if (!snapshot.memo->cleaned_again && HasCondition(job, kConditionAccepted) &&
      snapshot.reach.ok() && WantsCleanStore(job, success) &&
      age >= options.cleanup_settle_seconds && !IsPastLateCleanup(snapshot)) {
    return {CleanUpStore{!success, true}};
  }
  const std::optional<double>& ttl = job.spec.ttl_seconds_after_finished;
  WallTime completed;
  if (ttl.has_value() && ParseRfc3339(job.status.completion_time, &completed) &&
      ToSeconds(snapshot.wall - completed) >= *ttl) {
    return {DeleteJobObject{}};
  }
  return {};
}

std::vector<Action> DecideDeletion(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const Memo& memo = *snapshot.memo;
  const std::optional<LeftOver> left = FindLeftOver(snapshot);
  if (left.has_value() && !IsTold(job, left->reason)) {
    WriteDecision incomplete;
    incomplete.why = "clean-up incomplete";
    incomplete.conditions.push_back(Incomplete(*left));
    return {incomplete};
  }
  const bool waits =
      CapabilitiesOf(snapshot.options->backend).keeps_orphans && WantedFunctions(job);
  const bool releases = waits || !IsGivenUp(snapshot, memo.release);
  if (releases) {
    if (!snapshot.observations->instances_known) return {};
    if (std::vector<Action> actions = ReleaseFunctions(snapshot); !actions.empty()) return actions;
  }
  const bool clean = TouchedStore(snapshot) && job.spec.cleanup_policy != CleanupPolicy::kNever &&
                     snapshot.problem.ok() && !IsGivenUp(snapshot, memo.cleanup);
  // The checkpoint that a failed job kept is deleted with it.
  if (clean && (!memo.exchange_cleaned || memo.checkpoint_kept)) return {CleanUpStore{}};
  if (clean && MayHoldLateObjects(snapshot)) {
    const double settle = snapshot.options->cleanup_settle_seconds;
    if (snapshot.now - *memo.cleaned_at < FromSeconds(settle)) return {};
    return {CleanUpStore{false, true}};
  }
  if (!memo.job_key_deleted && releases) return {DeleteJobKey{}};
  return {RemoveFinalizer{}};
}

}  // namespace lambdadnn
