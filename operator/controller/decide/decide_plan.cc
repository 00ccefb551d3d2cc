// SPDX-License-Identifier: Apache-2.0
// The first plan of a job; time and cost spent so far are taken off. A job that resumes from
// another one's checkpoint is planned from there on, as the revision that follows the other job's.
#include "common/base/text.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/planning/planning.h"
#include "operator/controller/store/checkpoint_import.h"
#include "operator/planner/wording.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

Action PlanningFailure(const PlanningOutcome& outcome) {
  return FailJob(Reason::kInfeasible, ReasonOf(outcome.certificate));
}

// What the cluster narrows, for people; "" = nothing.
std::string NarrowedBy(const JobSnapshot& snapshot) {
  const PlatformView* const cluster = snapshot.observations->platform.get();
  return cluster == nullptr ? "" : Join(cluster->narrowed.narrowed, ", ");
}

// No plan fits what the cluster allows now, though one would fit the configured platform: not the
// job's fault, and over when others end. nullopt = that is not the cause.
std::optional<std::vector<Action>> AwaitCluster(const JobSnapshot& snapshot, PlannerInput input,
                                                const Result<PlanningOutcome>& outcome) {
  const PlatformView* const cluster = snapshot.observations->platform.get();
  if (cluster == nullptr) return std::nullopt;
  const std::string narrowed = NarrowedBy(snapshot);
  std::string why = cluster->narrowed.obstacle;
  if (why.empty() && outcome.ok() && outcome->feasible) return std::nullopt;
  if (why.empty() && narrowed.empty()) return std::nullopt;
  input.platform = snapshot.options->platform;
  const Result<PlanningOutcome> elsewhere = MakePlan(input);
  if (!elsewhere.ok() || !elsewhere->feasible) return std::nullopt;
  if (why.empty()) {
    why = (outcome.ok() ? ReasonOf(outcome->certificate) : outcome.status().message()) + " (" +
          narrowed + ")";
  }
  const std::string message =
      "no plan fits what the cluster allows now: " + why + "; it is tried again until one does: " +
      (cluster->narrowed.remedy.empty()
           ? "wait until others end, add nodes, raise the quota, or lower spec.functions or the "
             "objective"
           : cluster->narrowed.remedy);
  const Condition* said = FindCondition(snapshot.job, kConditionProvisioned);
  if (said != nullptr && HasReason(*said, Reason::kClusterTooSmall) && said->message == message) {
    return std::vector<Action>{};
  }
  WriteDecision waits;
  waits.why = "the cluster is too small";
  waits.conditions.push_back(
      MakeCondition(kConditionProvisioned, false, Reason::kClusterTooSmall, message));
  return std::vector<Action>{waits};
}

// The limits that the plan could not take into account.
void TellUnknown(const JobSnapshot& snapshot, WriteDecision* write) {
  const PlatformView* const cluster = snapshot.observations->platform.get();
  if (cluster == nullptr || cluster->unknown.empty()) return;
  constexpr size_t kMost = 6;
  std::vector<std::string> unknown = cluster->unknown;
  if (unknown.size() > kMost) {
    const std::string more = "and " + std::to_string(unknown.size() - kMost) + " more";
    unknown.resize(kMost);
    unknown.push_back(more);
  }
  write->conditions.push_back(MakeCondition(
      kConditionDegraded, true, Reason::kLimitsUnknown,
      "planned as if the cluster had no limits that could not be read: " + Join(unknown, "; ")));
}

}  // namespace

std::vector<Action> DecidePlan(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const bool resumes = !job.spec.checkpoint.resume_from.empty();
  const std::optional<Result<ImportedCheckpoint>>& imported = snapshot.memo->imported;
  if (resumes && !imported.has_value()) return {ImportResumed{}};
  if (resumes && !imported->ok()) {
    return {FailJob(Reason::kResumeFromUnusable, imported->status().message())};
  }
  const double elapsed = ActiveSeconds(job, snapshot.wall);
  const double spent = snapshot.meter.Spent();
  PlannerInput input =
      PlannerInputOf(job, PlatformOf(snapshot), {elapsed, spent, snapshot.wall}, false);
  Result<PlanningOutcome> outcome = MakePlan(input);
  if (auto waits = AwaitCluster(snapshot, input, outcome); waits.has_value()) return *waits;
  if (!outcome.ok()) return {FailJob(Reason::kPlanningFailed, outcome.status().message())};

  WriteDecision write;
  write.why = "plan";
  write.early = true;
  write.execution = job.status.execution;
  write.execution->planned_for = PlannedInputsOf(job.spec, *write.execution);
  if (!resumes) {
    if (!outcome->feasible) return {PlanningFailure(*outcome)};
    write.plan = outcome->plan;
  } else {
    const ImportedCheckpoint& start = **imported;
    const std::optional<Plan> whole = WholePlan(input, *outcome);
    if (!whole.has_value()) return {PlanningFailure(*outcome)};
    const Status fits = CheckFits(job.spec, start.manifest, whole->parameters, whole->iterations);
    if (!fits.ok()) return {FailJob(Reason::kResumeFromUnusable, fits.message())};
    LimitToRemaining(*whole, start.manifest.iteration, &input.limits);
    outcome = MakePlan(input);
    if (!outcome.ok()) return {FailJob(Reason::kPlanningFailed, outcome.status().message())};
    if (!outcome->feasible) return {PlanningFailure(*outcome)};
    write.plan = outcome->plan;
    write.plan->revision = start.reference.plan_revision + 1;
    write.plan->first_iteration = start.manifest.iteration;
    write.plan->iterations = whole->iterations;
    write.execution->first_iteration = start.manifest.iteration;
    write.execution->incarnation = start.reference.incarnation;
    write.execution->start_checkpoint = CheckpointToJson(start.reference);
  }
  if (auto rest = QuiesceBeforeOtherReservation(snapshot, *write.plan); rest.has_value())
    return *rest;
  ChangeReservation(snapshot, *write.plan, &write);
  // Predictions count from status.startTime, profiling included.
  write.plan->predicted.seconds += elapsed;
  write.plan->predicted.cost += spent;
  write.plan_history = WithRecord(job.status, RecordOf(*write.plan, "first plan", elapsed, spent));
  std::string message = DescribePlan(*write.plan);
  if (outcome->best_effort) {
    message += ", as fast as it can (bestEffort): " + ReasonOf(outcome->certificate);
  }
  if (const std::string_view means = CheapestMeans(outcome->measure); !means.empty()) {
    message += "; " + std::string(means);
  }
  if (resumes) {
    message += ", from iteration " + std::to_string(write.plan->first_iteration) + " of " +
               job.spec.checkpoint.resume_from + " on";
  }
  if (const std::string narrowed = NarrowedBy(snapshot); !narrowed.empty()) {
    message += "; the cluster allows no more: " + narrowed;
  }
  write.conditions.push_back(MakeCondition(kConditionProvisioned, true, Reason::kPlanned, message));
  TellUnknown(snapshot, &write);
  return {write};
}

}  // namespace lambdadnn
