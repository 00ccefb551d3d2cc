// SPDX-License-Identifier: Apache-2.0
// spec.suspend: stop at a checkpoint, write where, release every function.
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/round_view.h"

namespace lambdadnn {

std::vector<Action> DecideSuspend(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const Observations& observed = *snapshot.observations;
  const Memo& memo = *snapshot.memo;
  const std::optional<Round> round = CurrentRound(job);
  RoundView view;
  if (round.has_value()) view = ViewRound(snapshot, *round);
  if (view.broken.has_value() && view.broken->permanent && !observed.credentials_changed) {
    return {FailJob(view.broken->reason, view.broken->message)};
  }
  // The last slices finished before the stop reached them: the job is done.
  if (view.finished && memo.records_read == round) return DecideRun(snapshot);
  if (auto actions = Quiesce(snapshot, view); actions.has_value()) return *actions;

  if (HasCondition(job, kConditionSuspended) && job.status.start_time.empty()) {
    std::vector<Action> forget;
    for (const auto& [invocation, slice] : observed.slices)
      forget.push_back(ForgetSlice{invocation});
    return forget;
  }
  const QuiescePoint place = FindQuiescePoint(snapshot);
  if (place.look_up.has_value()) return {*place.look_up};
  WriteDecision suspended;
  suspended.why = place.clean ? "suspended" : "suspended after an unclean stop";
  suspended.start_time = "";
  suspended.execution = place.execution;
  suspended.execution->active_seconds = ActiveSeconds(job, snapshot.wall);
  HoldPlanFromQuiesce(snapshot, &suspended);
  suspended.conditions.push_back(MakeCondition(kConditionSuspended, true, Reason::kJobSuspended,
                                               "spec.suspend is set; no function is running"));
  return {suspended};
}

}  // namespace lambdadnn
