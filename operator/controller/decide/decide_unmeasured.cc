// SPDX-License-Identifier: Apache-2.0
// A job that trains while it is profiled (spec.profiling: WhileTraining): its first plan, made from
// nothing that is measured, and how it leaves that. The plan for what remains follows as any other
// change of plan does (decide_replan.cc).
#include <algorithm>

#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/round_view.h"
#include "operator/controller/planning/planning.h"
#include "operator/controller/planning/unmeasured_plan.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

using Actions = std::vector<Action>;

bool IsTold(const Job& job, Reason reason) {
  const Condition* const provisioned = FindCondition(job, kConditionProvisioned);
  return provisioned != nullptr && HasReason(*provisioned, reason);
}

WriteDecision ProfileFirst(const std::string& obstacle) {
  WriteDecision first;
  first.why = "profiled first";
  first.early = true;
  first.conditions.push_back(MakeCondition(kConditionProvisioned, false, Reason::kProfilingFirst,
                                           "the job is profiled before it trains, as " + obstacle));
  return first;
}

// Of the plan, the functions that measure beside it, and what all jobs share.
std::string CapacityObstacle(const JobSnapshot& snapshot, const Plan& plan) {
  const QueueView& queue = snapshot.observations->queue;
  if (!queue.limited) return "";
  Job job = snapshot.job;
  job.status.plan = plan;
  job.status.execution.unmeasured_plan = UnmeasuredPlan::kTrains;
  const Platform& platform = snapshot.options->platform;
  const Reservation both = ReservationOf(job, platform, {});
  if (FitsWithin(both, queue.capacity)) return "";
  return "one function that trains and those that measure need " +
         DescribeReservation(both, queue.capacity) + ", and all jobs share " +
         DescribeReservation(queue.capacity, queue.capacity);
}

// Of another group than those that measure.
const InstanceFact* FindOther(const Observations& observed) {
  for (const auto& [uid, fact] : observed.instances) {
    if (!fact.gone.has_value() && fact.instance.group != kProfileGroup) return &fact;
  }
  return nullptr;
}

// The training stops at a checkpoint, and all its functions are released; nullopt = done.
std::optional<Actions> QuiesceTraining(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const std::optional<Round> round = CurrentRound(job);
  if (!job.status.execution.functions.empty()) {
    const RoundView view = ViewRound(snapshot, *round);
    // The last slices finished before the stop reached them: the job is done.
    if (view.finished && snapshot.memo->records_read == round) return DecideRun(snapshot);
    if (auto actions = Quiesce(snapshot, view); actions.has_value()) return actions;
    const QuiescePoint place = FindQuiescePoint(snapshot);
    if (place.look_up.has_value()) return Actions{*place.look_up};
    WriteDecision stopped;
    stopped.why = "stopped to be profiled";
    stopped.execution = place.execution;
    return Actions{stopped};
  }
  if (const InstanceFact* const other = FindOther(*snapshot.observations); other != nullptr) {
    return Actions{DeleteOneGroup{other->instance.group}};
  }
  Actions forget;
  for (const auto& [invocation, slice] : snapshot.observations->slices) {
    if (slice.role.kind != RoleKind::kProfile) forget.push_back(ForgetSlice{invocation});
  }
  return forget.empty() ? std::nullopt : std::optional(forget);
}

}  // namespace

std::optional<std::vector<Action>> DecideUnmeasuredPlan(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const bool wanted = job.spec.profiling == Profiling::kWhileTraining && !job.status.profile &&
                      !job.status.plan && !IsStarted(job);
  // What was told once is not decided again: functions may have measured since.
  if (!wanted || IsTold(job, Reason::kProfilingFirst)) return std::nullopt;
  Result<Plan> plan =
      MakeUnmeasuredPlan(job.spec, PlatformOf(snapshot), job.status.execution.facts);
  if (!plan.ok()) return Actions{ProfileFirst(plan.status().message())};
  if (const std::string full = CapacityObstacle(snapshot, *plan); !full.empty()) {
    return Actions{ProfileFirst(full)};
  }
  WriteDecision write;
  write.why = "unmeasured plan";
  write.early = true;
  write.execution = job.status.execution;
  write.execution->unmeasured_plan = UnmeasuredPlan::kTrains;
  write.plan_history =
      WithRecord(job.status, RecordOf(*plan, "first plan, before the model is measured",
                                      ActiveSeconds(job, snapshot.wall), snapshot.meter.Spent()));
  write.conditions.push_back(
      MakeCondition(kConditionProvisioned, true, Reason::kPlanUnmeasured,
                    DescribePlan(*plan) + ", until the model is measured and the rest is planned"));
  write.plan = *std::move(plan);
  return Actions{write};
}

WriteDecision LeaveUnmeasuredPlan(ExecutionStatus execution, Reason reason,
                                  const std::string& why) {
  WriteDecision leave;
  leave.why = "profiled first: " + why;
  leave.execution = std::move(execution);
  leave.execution->unmeasured_plan = UnmeasuredPlan::kLeft;
  leave.conditions.push_back(MakeCondition(
      kConditionDegraded, true, reason,
      why + "; the job is profiled before it goes on, and then planned for what is left"));
  return leave;
}

bool CannotGoOnUnmeasured(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  return TrainsUnmeasured(job) &&
         !(WithinFunctions(job.spec, *job.status.plan) &&
           WithinPlatform(job.spec, *job.status.plan, snapshot.options->platform));
}

std::vector<Action> DecideProfileFirst(const JobSnapshot& snapshot) {
  if (auto actions = QuiesceTraining(snapshot); actions.has_value()) return *actions;
  return DecideProfile(snapshot);
}

}  // namespace lambdadnn
