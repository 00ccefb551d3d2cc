// SPDX-License-Identifier: Apache-2.0
// Asks the planner, and counts what has already been spent. A job that goes on from another one's
// checkpoint is planned from there on, as the plan revision that follows the other job's.
#include "operator/controller/checkpoint_import.h"
#include "operator/controller/decide.h"
#include "operator/controller/planning.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

Action PlanningFailure(const PlanningOutcome& outcome) {
  return FailJob("Infeasible", outcome.certificate.reason);
}

}  // namespace

std::vector<Action> DecidePlan(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const bool resumes = !job.spec.checkpoint.resume_from.empty();
  const std::optional<Result<ImportedCheckpoint>>& imported = snapshot.facts.imported;
  if (resumes && !imported.has_value()) return {BringCheckpoint{}};
  if (resumes && !imported->ok()) {
    return {FailJob("ResumeFromUnusable", imported->status().message())};
  }
  const double elapsed = ActiveSeconds(job, snapshot.wall);
  const double spent = snapshot.meter.usage.cost;
  PlannerInput input = PlannerInputOf(job, snapshot.options->platform, elapsed, spent, false);
  Result<PlanningOutcome> outcome = MakePlan(input);
  if (!outcome.ok()) return {FailJob("PlanningFailed", outcome.status().message())};

  WriteDecision write;
  write.why = "plan";
  write.early = true;
  write.execution = job.status.execution;
  write.execution->planned_for = PlanningSignature(job.spec);
  if (!resumes) {
    if (!outcome->feasible) return {PlanningFailure(*outcome)};
    write.plan = outcome->plan;
  } else {
    const ImportedCheckpoint& start = **imported;
    const std::optional<Plan> whole = WholePlan(input, *outcome);
    if (!whole.has_value()) return {PlanningFailure(*outcome)};
    const Status fits = CheckFits(job.spec, start.manifest, whole->parameters, whole->iterations);
    if (!fits.ok()) return {FailJob("ResumeFromUnusable", fits.message())};
    LimitToRest(*whole, start.manifest.iteration, &input.limits);
    outcome = MakePlan(input);
    if (!outcome.ok()) return {FailJob("PlanningFailed", outcome.status().message())};
    if (!outcome->feasible) return {PlanningFailure(*outcome)};
    write.plan = outcome->plan;
    write.plan->revision = start.reference.plan_revision + 1;
    write.plan->first_iteration = start.manifest.iteration;
    write.plan->iterations = whole->iterations;
    write.execution->first_iteration = start.manifest.iteration;
    write.execution->incarnation = start.reference.incarnation;
    write.execution->start_checkpoint = CheckpointToJson(start.reference);
  }
  if (auto rest = RestBeforeOtherRoom(snapshot, *write.plan); rest.has_value()) return *rest;
  ChangeRoom(snapshot, *write.plan, &write);
  // Predictions count from status.startTime, profiling included.
  write.plan->predicted.seconds += elapsed;
  write.plan->predicted.cost += spent;
  write.plan_history = WithRecord(job.status, RecordOf(*write.plan, "first plan", elapsed, spent));
  std::string message = std::to_string(write.plan->functions) + " functions of " +
                        std::to_string(write.plan->memory_mib) + " MiB and " +
                        std::to_string(write.plan->aggregation.server_functions()) +
                        " parameter servers";
  if (resumes) {
    message += ", from iteration " + std::to_string(write.plan->first_iteration) + " of " +
               job.spec.checkpoint.resume_from + " on";
  }
  write.conditions.push_back(MakeCondition(kConditionProvisioned, true, "Planned", message));
  return {write};
}

}  // namespace lambdadnn
