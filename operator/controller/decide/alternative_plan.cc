// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/alternative_plan.h"

#include <algorithm>

#include "operator/controller/decide/drift.h"
#include "operator/controller/planning/unmeasured_plan.h"
#include "operator/planner/candidate.h"
#include "operator/planner/wording.h"

namespace lambdadnn {
namespace {

// The plan in force, for the iterations that are left.
Result<PlanCandidate> PredictCurrent(PlannerInput input, const Plan& plan) {
  input.aggregation.transport = plan.aggregation.transport;
  input.aggregation.placement = plan.aggregation.placement;
  input.aggregation.shards = plan.aggregation.shards;
  input.aggregation.layers = plan.aggregation.layers;
  input.aggregation.spread = plan.aggregation.spread;
  if (plan.aggregation.placement == Placement::kDedicated) {
    input.aggregation.server_memory_mib = plan.server_memory_mib;
  }
  return PredictPlan(input, plan.functions, plan.memory_mib);
}

// By the corrections that it was made with.
Result<PlanCandidate> PredictRest(const JobSnapshot& snapshot, int64_t iteration) {
  const PlannerInput input =
      ReplannerInputOf(snapshot.job, PlatformOf(snapshot), SpentOf(snapshot), iteration);
  return PredictCurrent(input, *snapshot.job.status.plan);
}

// Each term by itself.
void Scale(const TimeFactors& by, Prediction* predicted) {
  for (const auto& [term, factor] : {std::pair{Term::kCompute, by.compute},
                                     {Term::kEvaluation, by.compute * by.evaluation},
                                     {Term::kCommunication, by.exchange},
                                     {Term::kColdStart, by.start},
                                     {Term::kLoad, by.start}}) {
    (*predicted)[term] *= factor;
    predicted->DeviationOf(term) *= factor;
  }
  const double before = predicted->seconds;
  predicted->seconds = predicted->TotalSeconds(static_cast<double>(predicted->iterations));
  const double longer = predicted->seconds / std::max(before, 1e-9);
  predicted->deviation *= longer;
  predicted->cost *= longer;  // functions are paid for by their time
}

// What a worker's part of an evaluation took over what the profile says; absent: there was none.
std::optional<double> EvaluationFactor(const WorkloadProfile& profile, const Plan& plan,
                                       double seconds) {
  constexpr double kMostFactor = 20;
  const double rate = profile.evaluation_rate.At(plan.memory_mib);
  const double samples = profile.evaluation_samples / plan.functions;
  if (seconds <= 0 || rate <= 0 || samples <= 0) return std::nullopt;
  return std::clamp(seconds * rate / samples, 1 / kMostFactor, kMostFactor);
}

// The plan in force was predicted by nobody: by what its iterations took beside nothing.
TimeFactors CorrectionsByStepsAlone(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const StepsAlone& steps = snapshot.observations->steps_alone;
  const TimeFactors& as_before = job.status.execution.corrections;
  if (steps.iterations() == 0 || !job.status.profile.has_value()) return as_before;
  const int64_t iteration =
      std::max(snapshot.observations->iteration, job.status.execution.first_iteration);
  const Result<PlanCandidate> current = PredictRest(snapshot, iteration);
  if (!current.ok()) return as_before;
  Plan plan = *job.status.plan;
  plan.predicted = current->predicted;
  OnlineEstimate estimate;
  estimate.Use(plan, *job.status.profile, as_before);
  // What one function alone hands to itself tells nothing of an exchange with others.
  const double exchange = plan.functions > 1 ? steps.exchange_seconds() : 0;
  estimate.ObserveUnpredicted(steps.iterations(), steps.compute_seconds(), exchange);
  TimeFactors corrections = estimate.corrections();
  const auto evaluation = EvaluationFactor(*job.status.profile, plan, steps.SecondsPerEvaluation());
  if (evaluation) corrections.evaluation = *evaluation / corrections.compute;
  return corrections;
}

}  // namespace

TimeFactors CorrectionsOf(const JobSnapshot& snapshot) {
  const JobStatus& status = snapshot.job.status;
  if (IsUnmeasured(snapshot.job)) return CorrectionsByStepsAlone(snapshot);
  const OnlineEstimate& estimate = snapshot.observations->estimate;
  const bool known = estimate.known() && estimate.revision() == status.plan->revision;
  return known ? estimate.corrections() : status.execution.corrections;
}

JobSpent SpentOf(const JobSnapshot& snapshot) {
  return {ActiveSeconds(snapshot.job, snapshot.wall), snapshot.meter.Spent(), snapshot.wall};
}

Result<Prediction> PredictByRun(const JobSnapshot& snapshot, int64_t iteration,
                                const TimeFactors& shown) {
  LDNN_ASSIGN_OR_RETURN(PlanCandidate current, PredictRest(snapshot, iteration));
  const TimeFactors& before = snapshot.job.status.execution.corrections;
  Scale({shown.compute / before.compute, shown.exchange / before.exchange,
         shown.start / before.start, shown.evaluation / before.evaluation},
        &current.predicted);
  return current.predicted;
}

AlternativePlan FindAlternative(const JobSnapshot& snapshot, int64_t iteration,
                                const RunSoFar& run) {
  Job job = snapshot.job;
  job.status.execution.corrections = run.corrections;
  const Platform& platform = PlatformOf(snapshot);
  PlannerInput input = ReplannerInputOf(job, platform, SpentOf(snapshot), iteration);
  AlternativePlan found;
  const Result<PlanCandidate> current = PredictCurrent(input, *job.status.plan);
  const CostMeasure measure = MeasureOf(platform, input.options.model);
  const Order order(input.objective);
  double second_cost = 0;
  double running = 0;
  double quiesce = 0;
  if (current.ok()) {
    found.current = *current;
    const Prediction& as_new = current->predicted;
    const WorkloadProfile& profile = *job.status.profile;
    second_cost = ComparedCost(*current, measure) / std::max(as_new.seconds, 1e-9);
    const double start = as_new[Term::kColdStart] + as_new[Term::kLoad];
    running = as_new.seconds - start;
    quiesce = run.iteration_seconds.value_or(as_new.IterationSeconds()) +
              profile.checkpoint_seconds + profile.release_seconds;
    found.misses_deadline = !order.Allows(order.SecondsOf(as_new) - start, 0);
    found.misses_budget = !order.Allows(0, second_cost * running);
  }
  Objective& objective = input.objective;
  if (objective.deadline_seconds) {
    objective.deadline_seconds = std::max(0.001, *objective.deadline_seconds - quiesce);
    input.elapsed_seconds += quiesce;
  }
  const Result<PlanningOutcome> outcome = MakePlan(input);
  if (!outcome.ok() || !outcome->feasible) {
    found.obstacle = outcome.ok() ? ReasonOf(outcome->certificate) : outcome.status().message();
    return found;
  }
  found.feasible = true;
  if (!current.ok()) {
    found.plan = outcome->plan;
    return found;
  }
  if (SameWork(NextRevision(job, outcome->plan, 0, 0, iteration), *job.status.plan)) return found;
  const double seconds = outcome->chosen.predicted.seconds + quiesce;
  const double cost = ComparedCost(outcome->chosen, measure) + second_cost * quiesce;
  const Order order_after(objective);
  const bool by_time = outcome->best_effort;
  const double rank = by_time ? TimeRank(seconds) : order_after.Rank(seconds, cost);
  const double rank_of_current =
      by_time ? TimeRank(running) : order_after.Rank(running, second_cost * running);
  found.saving = 1 - rank / std::max(rank_of_current, 1.0);
  const bool late = run.late.value_or(found.misses_deadline);
  const bool in_time_at_last = late && !outcome->best_effort;
  // Rates measured beside other load are off by more than what another plan would save.
  const bool certain = job.status.profile->residual <= snapshot.options->max_profile_residual;
  const bool is_better = (certain || late) && IsWorthSwitching(rank, rank_of_current);
  if (in_time_at_last || found.misses_budget || is_better) {
    found.plan = outcome->plan;
  } else if (outcome->best_effort) {
    found.obstacle = ReasonOf(outcome->certificate);
  }
  return found;
}

}  // namespace lambdadnn
