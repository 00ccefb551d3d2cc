// SPDX-License-Identifier: Apache-2.0
// A job that brings its id (job_id.h) and has no plan: its object was restored from a backup, or
// was created again. What its place in the store holds decides how it goes on.
#include "operator/api/job_id.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/planning/planning.h"
#include "operator/controller/store/job_place.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

using Actions = std::vector<Action>;

std::string PlaceOf(const Job& job) { return MakeStoreReference(job).uri + "/" + JobPrefix(job); }

// As after a round that was given up: from the newest checkpoint on, in another incarnation.
WriteDecision GoOn(const JobSnapshot& snapshot, const FoundPlace& place) {
  const PlaceRecord& record = *place.record;
  JobSnapshot lost = snapshot;
  lost.job.status = record.status;
  WriteDecision restore;
  restore.why = "restored";
  restore.early = true;
  restore.plan = record.status.plan;
  restore.plan_history = record.status.plan_history;
  restore.profile = record.status.profile;
  restore.execution = FallenBack(lost);
  HoldPlanFromQuiesce(lost, &restore);
  restore.execution->job_id = JobIdOf(snapshot.job);
  restore.execution->predecessor_uid = record.uid;
  restore.conditions.push_back(MakeCondition(
      kConditionProvisioned, true, Reason::kRestored,
      DescribePlan(*restore.plan) + ", from iteration " +
          std::to_string(restore.execution->first_iteration) + " on, where the job of uid " +
          record.uid + " has left off in " + PlaceOf(snapshot.job)));
  return restore;
}

Actions EndAsBefore(const JobSnapshot& snapshot, const FoundPlace& place) {
  const PlaceOutcome& outcome = *place.outcome;
  const std::string folder = PlaceOf(snapshot.job);
  if (outcome.success && !place.model_is_there) {
    return {FailJob(Reason::kResultsMissing,
                    "the job was trained before it was restored, but its model is not in " +
                        folder +
                        "/results; restore the object store as well, or remove the "
                        "annotation " +
                        kJobIdAnnotation + " from the manifest to train again")};
  }
  WriteDecision end;
  end.why = "had ended";
  if (place.record.has_value()) {
    end.execution = snapshot.job.status.execution;
    end.execution->predecessor_uid = place.record->uid;
  }
  if (outcome.success) {
    end.model_uri = folder + "/results/" + kModelName;
    end.model_digest = outcome.model_digest;
    end.best_model = outcome.best_model;
    if (end.best_model) end.best_model->uri = folder + "/results/" + kBestModelName;
    end.conditions.push_back(MakeCondition(
        kConditionSuccessCriteriaMet, true, Reason::kTrainingFinished,
        "the job was trained before it was restored; its results are in " + folder + "/results"));
  } else {
    const ReasonRow* const row = FindReason(outcome.reason);
    end.conditions.push_back(MakeCondition(
        kConditionFailureTarget, true, row == nullptr ? Reason::kBackoffLimitExceeded : row->reason,
        "before the job was restored: " + outcome.message));
  }
  return {end};
}

// The annotation follows once status says the other id.
WriteDecision BeginElsewhere(const JobSnapshot& snapshot, const std::string& why) {
  WriteDecision elsewhere;
  elsewhere.why = "a place of its own";
  elsewhere.execution = snapshot.job.status.execution;
  elsewhere.execution->job_id = OwnJobId(snapshot.job.metadata);
  elsewhere.conditions.push_back(MakeCondition(
      kConditionAccepted, true, Reason::kPlaceNotUsed,
      "the annotation " + std::string(kJobIdAnnotation) + " names " + PlaceOf(snapshot.job) +
          ", but " + why + "; the job begins anew in a place of its own"));
  return elsewhere;
}

}  // namespace

std::optional<std::vector<Action>> DecideRestore(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  if (job.status.plan.has_value() || JobIdOf(job) == OwnJobId(job.metadata)) return std::nullopt;
  const FoundPlace* const place = snapshot.memo->place.get();
  if (place == nullptr) return Actions{LookIntoPlaceOfId{}};
  switch (place->state) {
    case PlaceState::kEmpty:
      return std::nullopt;
    case PlaceState::kUnfinished:
      return Actions{GoOn(snapshot, *place)};
    case PlaceState::kFinished:
      return EndAsBefore(snapshot, *place);
    case PlaceState::kOthers:
      return Actions{BeginElsewhere(snapshot, place->why)};
  }
  return std::nullopt;
}

}  // namespace lambdadnn
