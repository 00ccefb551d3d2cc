// SPDX-License-Identifier: Apache-2.0
// Asks the planner, and counts what has already been spent.
#include "operator/controller/decide.h"
#include "operator/controller/planning.h"

namespace lambdadnn {

std::vector<Action> DecidePlan(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const double elapsed = ActiveSeconds(job, snapshot.wall);
  const double spent = snapshot.meter.usage.cost;
  Result<PlanningOutcome> outcome =
      MakePlan(PlannerInputOf(job, snapshot.options->platform, elapsed, spent, false));
  if (!outcome.ok()) return {FailJob("PlanningFailed", outcome.status().message())};
  if (!outcome->feasible) return {FailJob("Infeasible", outcome->certificate.reason)};

  WriteDecision write;
  write.why = "plan";
  write.plan = outcome->plan;
  // Predictions count from status.startTime, profiling included.
  write.plan->predicted.seconds += elapsed;
  write.plan->predicted.cost += spent;
  write.conditions.push_back(MakeCondition(
      kConditionProvisioned, true, "Planned",
      std::to_string(write.plan->functions) + " functions of " +
          std::to_string(write.plan->memory_mib) + " MiB and " +
          std::to_string(write.plan->aggregation.server_functions()) + " parameter servers"));
  return {write};
}

}  // namespace lambdadnn
