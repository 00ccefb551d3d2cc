// SPDX-License-Identifier: Apache-2.0
// The end of a job: whatever the outcome, functions are released, the report is written, working
// objects are deleted, and only then does the job count as Complete or Failed.
#include "common/base/time_text.h"
#include "operator/controller/decide/decide.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

bool Every(const SliceFact&, const Round&) { return true; }

bool CleanupTimedOut(const JobSnapshot& snapshot) {
  const Memo& memo = *snapshot.memo;
  return memo.cleanup_since.has_value() &&
         snapshot.now - *memo.cleanup_since > FromSeconds(snapshot.options->cleanup_seconds);
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

// Degraded may be True for another reason, which does not tell what is left.
bool SaysCleanupIncomplete(const Job& job) {
  const Condition* degraded = FindCondition(job, kConditionDegraded);
  return degraded != nullptr && HasReason(*degraded, Reason::kCleanupIncomplete);
}

std::string LeftOver(const JobSnapshot& snapshot) {
  return "objects may be left under " + MakeStoreReference(snapshot.job).uri + "/" +
         JobPrefix(snapshot.job) + ": " + snapshot.memo->cleanup_error.message() +
         "; delete them once the store answers again";
}

}  // namespace

std::vector<Action> DecideEnding(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const Observations& observed = *snapshot.observations;
  const Memo& memo = *snapshot.memo;
  const bool success = HasCondition(job, kConditionSuccessCriteriaMet);
  const bool timed_out = CleanupTimedOut(snapshot);
  if (!observed.instances_known && !timed_out) return {};
  if (!timed_out) {
    if (std::vector<Action> actions = ReleaseFunctions(snapshot); !actions.empty()) return actions;
  }
  const bool touched_store = TouchedStore(snapshot);
  const bool clean = WantsCleanStore(job, success);
  if (touched_store && !timed_out) {
    if (!memo.report_written) return {WriteReport{}};
    if (clean && !memo.exchange_cleaned) return {CleanUpStore{!success}};
  }
  if (!memo.job_key_deleted && !timed_out) return {DeleteJobKey{}};

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
  if (timed_out && !memo.exchange_cleaned && touched_store) {
    end.conditions.push_back(
        MakeCondition(kConditionDegraded, true, Reason::kCleanupIncomplete, LeftOver(snapshot)));
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
  const Observations& observed = *snapshot.observations;
  const Memo& memo = *snapshot.memo;
  const bool timed_out = CleanupTimedOut(snapshot);
  if (!timed_out) {
    if (!observed.instances_known) return {};
    if (std::vector<Action> actions = ReleaseFunctions(snapshot); !actions.empty()) return actions;
    const bool clean = TouchedStore(snapshot) && job.spec.cleanup_policy != CleanupPolicy::kNever &&
                       snapshot.problem.ok();
    // The checkpoint that a failed job kept is deleted with it.
    if (clean && (!memo.exchange_cleaned || memo.checkpoint_kept)) return {CleanUpStore{}};
    if (clean && MayHoldLateObjects(snapshot)) {
      const double settle = snapshot.options->cleanup_settle_seconds;
      if (snapshot.now - *memo.cleaned_at < FromSeconds(settle)) return {};
      return {CleanUpStore{false, true}};
    }
    if (!memo.job_key_deleted) return {DeleteJobKey{}};
  } else if (!memo.exchange_cleaned && !SaysCleanupIncomplete(job)) {
    WriteDecision incomplete;
    incomplete.why = "clean-up incomplete";
    incomplete.conditions.push_back(
        MakeCondition(kConditionDegraded, true, Reason::kCleanupIncomplete, LeftOver(snapshot)));
    return {incomplete};
  }
  return {RemoveFinalizer{}};
}

}  // namespace lambdadnn
