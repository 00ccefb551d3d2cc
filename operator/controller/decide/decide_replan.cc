// SPDX-License-Identifier: Apache-2.0
// Another plan for the rest of a job, because its objective or bounds changed: the job quiesces at
// a checkpoint and continues under the next plan revision. An objective that leads to the same plan
// disturbs nothing; one that no plan can meet leaves the plan in force, unless the job's own bounds
// forbid that.
#include <algorithm>

#include "operator/controller/decide/alternative_plan.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/round_view.h"
#include "operator/controller/planning/planning.h"
#include "operator/controller/planning/unmeasured_plan.h"
#include "operator/planner/wording.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// Of its iterations beside nothing a job that is to be planned shows each worker so much, and is
// planned without where they are not told for so long.
constexpr double kStepsAloneSeconds = 3;
constexpr double kMostStepsAloneSeconds = 5;

bool StopsFor(const Job& job, Reason reason) {
  const Condition* condition = FindCondition(job, kConditionProvisioned);
  return condition != nullptr && condition->status == "False" && HasReason(*condition, reason);
}

// Because the run differs from its prediction, and for nothing else.
bool IsForDrift(const Job& job) {
  return StopsFor(job, Reason::kPredictionDrift) && !PlanIsOutOfDate(job);
}

bool IsUnderWay(const Job& job) {
  return StopsFor(job, Reason::kReplanning) || StopsFor(job, Reason::kPredictionDrift);
}

struct Replanned {
  std::optional<Plan> plan;
  std::string obstacle;  // why there is none
};

Replanned PlanFrom(const JobSnapshot& snapshot, int64_t first_iteration) {
  Job job = snapshot.job;
  job.status.execution.corrections = CorrectionsOf(snapshot);
  const double elapsed = ActiveSeconds(job, snapshot.wall);
  const double spent = snapshot.meter.Spent();
  PlannerInput input =
      ReplannerInputOf(job, PlatformOf(snapshot), {elapsed, spent, snapshot.wall}, first_iteration);
  Result<PlanningOutcome> outcome = MakePlan(input);
  if (snapshot.observations->platform != nullptr && (!outcome.ok() || !outcome->feasible)) {
    // A cluster that is too small just now does not make the plan infeasible: the job waits for it.
    input.platform = snapshot.options->platform;
    outcome = MakePlan(input);
  }
  Replanned replanned;
  if (!outcome.ok()) {
    replanned.obstacle = outcome.status().message();
  } else if (!outcome->feasible) {
    replanned.obstacle = ReasonOf(outcome->certificate);
  } else {
    replanned.plan = NextRevision(job, outcome->plan, elapsed, spent, first_iteration);
    replanned.obstacle = TooSmall(job, *replanned.plan);
    if (!replanned.obstacle.empty()) replanned.plan.reset();
  }
  return replanned;
}

std::string ReasonOf(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  if (IsUnmeasured(job)) return "the model is measured";
  if (!WithinPlatform(job.spec, *job.status.plan, snapshot.options->platform)) {
    return "the plan is beyond what the platform lets functions be";
  }
  if (!TooSmall(job, *job.status.plan).empty()) {
    return "functions ran out of memory and were killed";
  }
  if (IsForDrift(job)) return DescribeDrift(snapshot);
  const std::optional<PlannedInputs>& planned_for = job.status.execution.planned_for;
  const int64_t epochs = PlannedInputsOf(job.spec, job.status.execution).epochs;
  const bool same = !planned_for.has_value() || planned_for->epochs == epochs ||
                    (planned_for->epochs == 0 && job.status.plan->epochs() == epochs);
  return same ? "the objective or the bounds changed" : "spec.training.epochs changed";
}

// The plan in force is the answer to the spec as it is now.
WriteDecision KeepPlan(const JobSnapshot& snapshot, const std::string& why) {
  WriteDecision keep;
  keep.why = why;
  keep.execution = snapshot.job.status.execution;
  keep.execution->planned_for = PlannedInputsOf(snapshot.job.spec, *keep.execution);
  return keep;
}

std::vector<Action> KeepDespite(const JobSnapshot& snapshot, const std::string& obstacle) {
  const Job& job = snapshot.job;
  if (!TooSmall(job, *job.status.plan).empty()) {
    return {FailJob(Reason::kOutOfMemory,
                    TooSmall(job, *job.status.plan) + ", and no plan gives more: " + obstacle)};
  }
  if (!WithinPlatform(job.spec, *job.status.plan, snapshot.options->platform)) {
    return {FailJob(Reason::kInfeasible,
                    "the job's plan is beyond what the platform lets functions be: " + obstacle)};
  }
  if (!WithinFunctions(job.spec, *job.status.plan)) {
    return {FailJob(Reason::kInfeasible, "the job cannot go on under its new bounds: " + obstacle)};
  }
  WriteDecision keep = KeepPlan(snapshot, "no other plan");
  const int revision = job.status.plan->revision;
  const bool drifted = IsForDrift(job);
  const std::string what = drifted
                               ? DescribeDrift(snapshot) + ", and no plan meets the objective now"
                               : "the changed objective or epochs cannot be met";
  keep.conditions.push_back(MakeCondition(
      kConditionDegraded, true, drifted ? Reason::kPredictionDrift : Reason::kReplanInfeasible,
      what + ", the job goes on under plan revision " + std::to_string(revision) + " for " +
          std::to_string(job.status.plan->iterations) + " iterations: " + obstacle));
  keep.conditions.push_back(MakeCondition(
      kConditionProvisioned, true, Reason::kPlanKept,
      "plan revision " + std::to_string(revision) + " stays: " + DescribePlan(*job.status.plan)));
  return {keep};
}

// What is left of the job, under the plan in force from here on.
Prediction PredictedFromHere(const JobSnapshot& snapshot, Prediction predicted) {
  const JobSpent spent = SpentOf(snapshot);
  const double start = predicted[Term::kColdStart] + predicted[Term::kLoad];
  const double left = predicted.seconds - start;
  // Functions are paid for by their time, and those of it are there.
  predicted.cost *= left / std::max(predicted.seconds, 1e-9);
  predicted[Term::kColdStart] = predicted[Term::kLoad] = 0;
  predicted.DeviationOf(Term::kColdStart) = predicted.DeviationOf(Term::kLoad) = 0;
  predicted.seconds = left + spent.active_seconds;
  predicted.cost += spent.money;
  return predicted;
}

// The plan that was made before the model was measured, now with a prediction of what is left.
std::vector<Action> KeepMeasured(const JobSnapshot& snapshot, int64_t iteration,
                                 const TimeFactors& shown, const PlanCandidate& current,
                                 const std::string& why) {
  const Job& job = snapshot.job;
  const JobSpent spent = SpentOf(snapshot);
  WriteDecision keep = KeepPlan(snapshot, "the plan is measured");
  keep.execution->unmeasured_plan = UnmeasuredPlan::kNone;
  keep.execution->corrections = shown;
  keep.plan = job.status.plan;
  const Result<Prediction> by_run = PredictByRun(snapshot, iteration, shown);
  keep.plan->predicted = PredictedFromHere(snapshot, by_run.ok() ? *by_run : current.predicted);
  keep.plan_history = job.status.plan_history;
  for (PlanRecord& record : *keep.plan_history) {
    if (record.revision != keep.plan->revision) continue;
    record.predicted_seconds = keep.plan->predicted.seconds;
    record.predicted_cost = keep.plan->predicted.cost;
    record.predicted_from = {iteration, spent.active_seconds, spent.money};
  }
  ChangeReservation(snapshot, *keep.plan, &keep);
  keep.conditions.push_back(MakeCondition(
      kConditionProvisioned, true, Reason::kPlanKept,
      "plan revision " + std::to_string(keep.plan->revision) +
          " stays, now that the model is measured: " + DescribePlan(*keep.plan) + why));
  return {keep};
}

// Its functions go on.
bool Runs(const JobSnapshot& snapshot) {
  const ExecutionStatus& execution = snapshot.job.status.execution;
  return execution.unmeasured_plan != UnmeasuredPlan::kLeft && !execution.functions.empty();
}

// Slices run, and their iterations have not been seen for long since nothing measures beside them.
bool AwaitsStepsAlone(const JobSnapshot& snapshot, const RoundView& view) {
  const StepsAlone& steps = snapshot.observations->steps_alone;
  if (!Runs(snapshot) || !view.any_started || view.broken || view.all_ended) return false;
  const int workers = std::max(1, snapshot.job.status.plan->functions);
  const bool seen =
      steps.compute_seconds() + steps.exchange_seconds() >= kStepsAloneSeconds * workers;
  return !seen &&
         (!steps.since() || snapshot.now - *steps.since() < FromSeconds(kMostStepsAloneSeconds));
}

// The model has been measured while the job trained, or before it went on.
std::vector<Action> BeginMeasured(const JobSnapshot& snapshot, const RoundView& view) {
  const Job& job = snapshot.job;
  if (AwaitsStepsAlone(snapshot, view)) return DecideRun(snapshot);
  const int64_t iteration =
      std::max(snapshot.observations->iteration, job.status.execution.first_iteration);
  const TimeFactors shown = CorrectionsOf(snapshot);
  const AlternativePlan found = FindAlternative(snapshot, iteration, {shown, {}, {}});
  const auto keep = [&](const std::string& why) {
    return KeepMeasured(snapshot, iteration, shown, *found.current, why);
  };
  const bool stays = found.current && Runs(snapshot);
  const bool meets = stays && !found.misses_deadline && !found.misses_budget;
  if (found.feasible && stays && !found.plan) {
    return keep("");
  }
  if (meets && !found.feasible) {
    return keep(", as no other fits what the cluster allows now");
  }
  if (meets && LacksCapacity(snapshot, *found.plan)) {
    return keep(", as there is no capacity for " + DescribePlan(*found.plan));
  }
  const Replanned replanned = PlanFrom(snapshot, iteration);
  if (!replanned.plan.has_value()) return {FailJob(Reason::kInfeasible, replanned.obstacle)};
  WriteDecision begin;
  begin.why = "replanning";
  begin.conditions.push_back(MakeCondition(
      kConditionProvisioned, false, Reason::kReplanning,
      ReasonOf(snapshot) + ": stopping at a checkpoint to go on with " +
          DescribePlan(*replanned.plan) + " in place of " + DescribePlan(*job.status.plan)));
  return {begin};
}

// Because no plan was found.
bool IsDegradedByPlan(const Job& job) {
  const Condition* degraded = FindCondition(job, kConditionDegraded);
  return degraded != nullptr && degraded->status == "True" &&
         (HasReason(*degraded, Reason::kReplanInfeasible) ||
          HasReason(*degraded, Reason::kPredictionDrift) ||
          HasReason(*degraded, Reason::kNotMeasured));
}

std::vector<Action> KeepTheSame(const JobSnapshot& snapshot) {
  WriteDecision keep = KeepPlan(snapshot, "the same plan again");
  keep.conditions.push_back(MakeCondition(
      kConditionProvisioned, true, Reason::kPlanKept,
      std::string(IsForDrift(snapshot.job) ? "what the run has shown" : "the changed objective") +
          " leads to the plan in force: " + DescribePlan(*snapshot.job.status.plan)));
  if (IsDegradedByPlan(snapshot.job)) {
    keep.conditions.push_back(MakeCondition(kConditionDegraded, false, Reason::kRecovered,
                                            "the objective can be met under the plan in force"));
  }
  return {keep};
}

// A better plan is not worth waiting for: the job has functions now. Empty = there is capacity, or
// slices have been told to stop already.
std::vector<Action> KeepWithoutCapacity(const JobSnapshot& snapshot, const Round& round) {
  const Job& job = snapshot.job;
  for (const auto& [invocation, slice] : snapshot.observations->slices) {
    const bool goes_on = slice.record == nullptr && !snapshot.memo->stops.contains(invocation);
    if (!InRound(slice, round) || !goes_on) return {};
  }
  const Replanned replanned = PlanFrom(snapshot, snapshot.observations->iteration);
  if (!replanned.plan || !LacksCapacity(snapshot, *replanned.plan)) return {};
  WriteDecision keep = KeepPlan(snapshot, "no capacity for another plan");
  keep.conditions.push_back(
      MakeCondition(kConditionProvisioned, true, Reason::kPlanKept,
                    "plan revision " + std::to_string(job.status.plan->revision) +
                        " stays, as there is no capacity for " + DescribePlan(*replanned.plan)));
  return {keep};
}

std::vector<Action> Begin(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const int64_t iteration =
      std::max(snapshot.observations->iteration, job.status.execution.first_iteration);
  const Replanned replanned = PlanFrom(snapshot, iteration);
  if (!replanned.plan.has_value()) return KeepDespite(snapshot, replanned.obstacle);
  if (SameWork(*replanned.plan, *job.status.plan)) return KeepTheSame(snapshot);
  WriteDecision begin;
  begin.why = "replanning";
  begin.conditions.push_back(MakeCondition(kConditionProvisioned, false, Reason::kReplanning,
                                           ReasonOf(snapshot) +
                                               ": stopping at a checkpoint to go on with " +
                                               DescribePlan(*replanned.plan)));
  return {begin};
}

// Adds the plan of `write` to the history. Revisions without a checkpoint of their own are removed:
// those after the revision of the checkpoint from which `write` continues, unless they begin there.
void AddToLog(const JobSnapshot& snapshot, const std::string& reason, WriteDecision* write) {
  std::optional<CheckpointReference> base;
  if (write->execution->start_checkpoint.has_value()) {
    base = CheckpointFromJson(*write->execution->start_checkpoint);
  }
  JobStatus status = snapshot.job.status;
  std::erase_if(status.plan_history, [&](const PlanRecord& record) {
    return record.revision > (base.has_value() ? base->plan_revision : 0) &&
           record.first_iteration != write->plan->first_iteration;
  });
  write->plan_history =
      WithRecord(status, RecordOf(*write->plan, reason, ActiveSeconds(snapshot.job, snapshot.wall),
                                  snapshot.meter.Spent()));
}

std::vector<Action> Finish(const JobSnapshot& snapshot, const ExecutionStatus& execution) {
  const Job& job = snapshot.job;
  const Replanned replanned = PlanFrom(snapshot, execution.first_iteration);
  const bool unmeasured = IsUnmeasured(job);
  if (unmeasured && !replanned.plan) return {FailJob(Reason::kInfeasible, replanned.obstacle)};
  // `execution` is written either way: it is where the job has quiesced.
  const bool same = replanned.plan && SameWork(*replanned.plan, *job.status.plan);
  // What begins here can be predicted: a revision of its own, even if it is the same work.
  if (!replanned.plan || (same && !unmeasured)) {
    std::vector<Action> actions = replanned.plan.has_value()
                                      ? KeepTheSame(snapshot)
                                      : KeepDespite(snapshot, replanned.obstacle);
    auto* keep = std::get_if<WriteDecision>(&actions.front());
    if (keep != nullptr && keep->execution.has_value()) {
      const std::optional<PlannedInputs> planned_for = keep->execution->planned_for;
      keep->execution = execution;
      keep->execution->planned_for = planned_for;
      HoldPlanFromQuiesce(snapshot, keep);
    }
    return actions;
  }
  WriteDecision write;
  write.why = "plan revision " + std::to_string(replanned.plan->revision);
  write.plan = replanned.plan;
  write.execution = execution;
  write.execution->planned_for = PlannedInputsOf(job.spec, execution);
  write.execution->corrections = CorrectionsOf(snapshot);
  write.execution->unmeasured_plan = UnmeasuredPlan::kNone;
  ChangeReservation(snapshot, *write.plan, &write);
  AddToLog(snapshot, ReasonOf(snapshot), &write);
  write.conditions.push_back(MakeCondition(
      kConditionProvisioned, true, Reason::kReplanned,
      "plan revision " + std::to_string(write.plan->revision) + " from iteration " +
          std::to_string(write.plan->first_iteration) + " on: " + DescribePlan(*write.plan)));
  if (IsDegradedByPlan(job)) {
    write.conditions.push_back(MakeCondition(kConditionDegraded, false, Reason::kRecovered,
                                             "there is a plan that meets the objective"));
  }
  return {write};
}

}  // namespace

void HoldPlanFromQuiesce(const JobSnapshot& snapshot, WriteDecision* write) {
  const std::optional<Plan>& plan = snapshot.job.status.plan;
  if (!plan.has_value() || !write->execution->start_checkpoint.has_value()) return;
  const auto base = CheckpointFromJson(*write->execution->start_checkpoint);
  if (!base.has_value() || base->plan_revision >= plan->revision ||
      base->iteration == plan->first_iteration) {
    return;
  }
  write->plan = plan;
  ++write->plan->revision;
  write->plan->isa.clear();
  write->plan->libtorch.clear();
  write->plan->first_iteration = base->iteration;
  AddToLog(snapshot,
           "the checkpoint that revision " + std::to_string(plan->revision) +
               " was to begin with is lost",
           write);
}

std::vector<Action> DecideReplan(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const Round round = *CurrentRound(job);
  const RoundView view = ViewRound(snapshot, round);
  const bool refused = snapshot.observations->credentials_changed;
  if (view.broken.has_value() && view.broken->permanent && !refused) {
    return {FailJob(view.broken->reason, view.broken->message)};
  }
  // The last slices finished before the stop reached them: the job is done.
  if (view.finished && snapshot.memo->records_read == round) return DecideRun(snapshot);
  if (!IsUnderWay(job)) return IsUnmeasured(job) ? BeginMeasured(snapshot, view) : Begin(snapshot);
  if (IsForDrift(job)) {
    std::vector<Action> keep = KeepWithoutCapacity(snapshot, round);
    if (!keep.empty()) return keep;
  }
  if (auto actions = Quiesce(snapshot, view); actions.has_value()) return *actions;
  const QuiescePoint place = FindQuiescePoint(snapshot);
  if (place.look_up.has_value()) return {*place.look_up};
  return Finish(snapshot, place.execution);
}

bool NeedsReplan(const Job& job, const Platform& platform) {
  const std::optional<Plan>& plan = job.status.plan;
  if (IsUnmeasured(job)) return job.status.profile.has_value();
  const bool beyond = plan.has_value() && !WithinPlatform(job.spec, *plan, platform);
  return beyond || PlanIsOutOfDate(job) || IsUnderWay(job);
}

}  // namespace lambdadnn
