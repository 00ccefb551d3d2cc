// SPDX-License-Identifier: Apache-2.0
// spec.suspend: stop at a checkpoint, remember where, give every function back.
#include "operator/controller/decide.h"
#include "operator/controller/round_view.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

bool Every(const SliceFact&, const Round&) { return true; }

}  // namespace

std::vector<Action> DecideSuspend(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const Facts& facts = snapshot.facts;
  const std::optional<Round> round = CurrentRound(job);
  RoundView view;
  if (round.has_value()) view = ViewRound(snapshot, *round);
  if (view.broken.has_value() && view.broken->permanent) {
    return {FailJob(view.broken->reason, view.broken->message)};
  }
  // The last slices finished before they heard of it: the job is done.
  if (view.finished && facts.records_read == round) return DecideRun(snapshot);

  const StopManner manner = view.broken.has_value() ? StopManner::kAtOnce : StopManner::kGraceful;
  std::vector<Action> stops = StopSlices(snapshot, manner, Every, round.value_or(Round{}));
  if (!stops.empty()) return stops;
  for (const auto& [invocation, slice] : facts.slices) {
    if (MayRun(slice, facts)) return {};
  }
  if (view.all_ended && view.checkpoint.has_value()) {
    WriteDecision write;
    write.why = "stopped at iteration " + std::to_string(view.next_iteration);
    write.execution = job.status.execution;
    write.execution->first_iteration = view.next_iteration;
    write.execution->start_checkpoint = CheckpointToJson(*view.checkpoint);
    if (view.next_iteration == round->first_iteration) ++write.execution->incarnation;
    return {write};
  }
  if (AnyLiveInstance(facts)) return {DeleteAllGroups{}};
  if (HasCondition(job, kConditionSuspended) && job.status.start_time.empty()) {
    std::vector<Action> forget;
    for (const auto& [invocation, slice] : facts.slices) forget.push_back(ForgetSlice{invocation});
    return forget;
  }
  WriteDecision suspended;
  suspended.why = "suspended";
  suspended.start_time = "";
  suspended.execution = job.status.execution;
  const bool unclean = round.has_value() && (view.any_started || facts.own_round != round);
  if (unclean) {
    // What had begun is never taken up again.
    if (facts.checkpoint_looked_up != round) return {LookUpCheckpoint{*round}};
    suspended.why = "suspended after an unclean stop";
    suspended.execution = FallenBack(snapshot);
  }
  suspended.execution->active_seconds = ActiveSeconds(job, snapshot.wall);
  suspended.conditions.push_back(MakeCondition(kConditionSuspended, true, "JobSuspended",
                                               "spec.suspend is set; no function is running"));
  return {suspended};
}

}  // namespace lambdadnn
