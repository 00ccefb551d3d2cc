// SPDX-License-Identifier: Apache-2.0
// Another plan because the run differs from its prediction: the planner is asked with what was
// learnt, and the job quiesces (decide_replan.cc) where its answer is worth that.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/base/statistics.h"
#include "operator/controller/decide/alternative_plan.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/drift.h"
#include "operator/controller/decide/round_view.h"
#include "operator/controller/planning/planning.h"

namespace lambdadnn {
namespace {

using Actions = std::vector<Action>;

std::string Rounded(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);  // NOLINT: the formats are literals
  return text;
}

// Until no function of the plan in force is left.
double QuiesceSeconds(const JobSnapshot& snapshot) {
  const WorkloadProfile& profile = *snapshot.job.status.profile;
  return snapshot.observations->estimate.SecondsPerIteration() + profile.checkpoint_seconds +
         profile.release_seconds;
}

// Of a job that trains as fast as it can the deadline may have been missed from the first.
bool WasToBeInTime(const Job& job, double seconds_allowed, const JobSpent& spent) {
  return !job.spec.objective.best_effort ||
         job.status.plan->predicted.seconds - spent.active_seconds <= seconds_allowed;
}

DriftFacts FactsOf(const JobSnapshot& snapshot, int64_t iteration) {
  const Job& job = snapshot.job;
  const OnlineEstimate& estimate = snapshot.observations->estimate;
  const JobSpent spent = SpentOf(snapshot);
  DriftFacts facts;
  facts.iterations = iteration - job.status.plan->first_iteration;
  facts.stretches = estimate.stretches();
  facts.replans = job.status.execution.drift_replans;
  if (facts.replans > 0 && !job.status.plan_history.empty()) {
    facts.seconds_since_replan = spent.active_seconds - job.status.plan_history.back().at_seconds;
  }
  facts.iteration_factor = estimate.iteration_factor();
  facts.iteration_deviation = estimate.iteration_deviation();
  facts.remaining = estimate.Remaining(iteration);
  facts.seconds_allowed = SecondsToDeadline(job, spent);
  if (facts.seconds_allowed && !WasToBeInTime(job, *facts.seconds_allowed, spent)) {
    facts.seconds_allowed.reset();
  }
  facts.switch_seconds =
      QuiesceSeconds(snapshot) + estimate.start_factor() * estimate.expected().start;
  facts.quantile = NormalQuantile(job.spec.objective.confidence.value_or(kDefaultConfidence));
  return facts;
}

std::string DescribeLateness(const DriftFacts& facts) {
  return "it would end " + Rounded("%.0f s", facts.remaining.seconds - *facts.seconds_allowed) +
         " after its deadline";
}

Actions BeginReplan(const JobSnapshot& snapshot, const DriftFacts& facts, Drift drift,
                    const AlternativePlan& found) {
  const Job& job = snapshot.job;
  const std::string why =
      drift == Drift::kLate
          ? DescribeLateness(facts)
          : "another plan saves " + Rounded("%.0f %%", 100 * found.saving) + " of what remains";
  WriteDecision begin;
  begin.why = "predictions drifted";
  begin.execution = job.status.execution;
  ++begin.execution->drift_replans;
  begin.conditions.push_back(MakeCondition(
      kConditionProvisioned, false, Reason::kPredictionDrift,
      DescribeDrift(snapshot) + ", and " + why + ": stopping at a checkpoint to go on with " +
          DescribePlan(*found.plan) + " in place of " + DescribePlan(*job.status.plan)));
  return {begin};
}

bool IsDegraded(const Job& job, Reason reason) {
  const Condition* const degraded = FindCondition(job, kConditionDegraded);
  return degraded != nullptr && degraded->status == "True" && HasReason(*degraded, reason);
}

// Once: the figures of a message that followed the estimate would be an event each time.
Actions TellThatItIsLate(const JobSnapshot& snapshot, const DriftFacts& facts,
                         const std::string& obstacle) {
  WriteDecision tell;
  tell.why = "no plan is in time";
  tell.conditions.push_back(MakeCondition(
      kConditionDegraded, true, Reason::kPredictionDrift,
      DescribeDrift(snapshot) + ", and " + DescribeLateness(facts) +
          "; it goes on under plan revision " + std::to_string(snapshot.job.status.plan->revision) +
          ", as no plan is in time: " + obstacle));
  return {tell};
}

Actions TellThatItIsInTime() {
  WriteDecision tell;
  tell.why = "in time again";
  tell.conditions.push_back(MakeCondition(kConditionDegraded, false, Reason::kRecovered,
                                          "the job is expected to end before its deadline"));
  return {tell};
}

// Slices run, and none is about to end.
bool Trains(const JobSnapshot& snapshot) {
  const RoundView view = ViewRound(snapshot, *CurrentRound(snapshot.job));
  return view.any_started && !view.broken &&
         std::none_of(view.entries.begin(), view.entries.end(), [](const RoundView::Entry& entry) {
           return entry.slice == nullptr || entry.slice->record != nullptr;
         });
}

}  // namespace

std::string DescribeDrift(const JobSnapshot& snapshot) {
  return "iterations take " + Rounded("%.2f", snapshot.observations->estimate.iteration_factor()) +
         " times as long as predicted";
}

std::optional<std::vector<Action>> DecideDrift(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const OnlineEstimate& estimate = snapshot.observations->estimate;
  const Plan& plan = *job.status.plan;
  if (job.spec.objective.fixed || !estimate.known() || estimate.revision() != plan.revision) {
    return std::nullopt;
  }
  const int64_t iteration = snapshot.observations->iteration;
  const std::optional<DriftLook>& last = snapshot.memo->drift_look;
  const bool degraded = IsDegraded(job, Reason::kPredictionDrift);
  const bool due = !last || last->plan_revision != plan.revision ||
                   IsLookDue(last->iteration, iteration, plan.iterations - iteration);
  const bool early = iteration - plan.first_iteration < kLeastDriftIterations ||
                     estimate.stretches() < kLeastDriftStretches;
  if (early || (!due && !degraded) || !Trains(snapshot)) return std::nullopt;
  const DriftFacts facts = FactsOf(snapshot, iteration);
  if (degraded && IsInTime(facts)) return TellThatItIsInTime();
  const Drift drift = due ? FindDrift(facts) : Drift::kNone;
  if (drift == Drift::kNone) return std::nullopt;
  const AlternativePlan found = FindAlternative(
      snapshot, iteration,
      {estimate.corrections(), estimate.SecondsPerIteration(), drift == Drift::kLate});
  if (found.plan && found.current) return BeginReplan(snapshot, facts, drift, found);
  Actions actions = {NoteDriftLook{{plan.revision, iteration}}};
  const bool told = degraded || IsDegraded(job, Reason::kReplanInfeasible);
  if (drift == Drift::kLate && !told && !found.obstacle.empty()) {
    Actions tell = TellThatItIsLate(snapshot, facts, found.obstacle);
    std::move(tell.begin(), tell.end(), std::back_inserter(actions));
  }
  return actions;
}

}  // namespace lambdadnn
