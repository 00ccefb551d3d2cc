// SPDX-License-Identifier: Apache-2.0
// Capacity for all functions of a job before the first of them is asked for, in the order of the
// queue (reservation.h). The job's clock (status.startTime) runs only while it has a reservation.
#include "common/base/time_text.h"
#include "operator/controller/decide/decide.h"

namespace lambdadnn {
namespace {

Reservation ReservationNow(const JobSnapshot& snapshot) {
  return ReservationOf(snapshot.job, snapshot.options->platform,
                       snapshot.observations->queue.capacity);
}

void StopClock(const JobSnapshot& snapshot, WriteDecision* write) {
  write->start_time = "";
  write->execution->active_seconds = ActiveSeconds(snapshot.job, snapshot.wall);
}

}  // namespace

bool LacksCapacity(const JobSnapshot& snapshot, const Plan& plan) {
  const Platform& platform = snapshot.options->platform;
  const Reservation reservation = ReservationOf(plan, platform);
  return IsStarted(snapshot.job) && NeedsMore(reservation, ReservationNow(snapshot)) &&
         !HasCapacity(
             snapshot.observations->queue, reservation,
             SecondsLeft(plan.predicted.seconds, ActiveSeconds(snapshot.job, snapshot.wall)));
}

std::optional<std::vector<Action>> AwaitReservation(const JobSnapshot& snapshot) {
  if (IsStarted(snapshot.job)) return std::nullopt;
  const Observations& observed = *snapshot.observations;
  const Memo& memo = *snapshot.memo;
  if (AnyLiveInstance(observed)) return std::vector<Action>{DeleteAllGroups{}};
  if (memo.start_again_at.has_value() && snapshot.now < *memo.start_again_at) {
    return std::vector<Action>{};
  }
  WriteDecision start;
  start.why = "start";
  start.early = true;
  start.start_time = FormatRfc3339Millis(snapshot.wall);  // what ActiveSeconds counts from
  start.reservation = ReservationNow(snapshot);
  start.seconds =
      SecondsLeft(PredictedSeconds(snapshot.job), ActiveSeconds(snapshot.job, snapshot.wall));
  if (!HasCapacity(observed.queue, *start.reservation, start.seconds)) {
    return std::vector<Action>{};
  }
  return std::vector<Action>{start};
}

std::vector<Action> ReleaseReservation(const JobSnapshot& snapshot) {
  if (AnyLiveInstance(*snapshot.observations)) return {DeleteAllGroups{}};
  WriteDecision back;
  back.why = "not all functions came";
  back.execution = snapshot.job.status.execution;
  back.start_failed = true;
  StopClock(snapshot, &back);
  return {back};
}

std::optional<std::vector<Action>> QuiesceBeforeOtherReservation(const JobSnapshot& snapshot,
                                                                 const Plan& plan) {
  if (!LacksCapacity(snapshot, plan) || !AnyLiveInstance(*snapshot.observations))
    return std::nullopt;
  return std::vector<Action>{DeleteAllGroups{}};
}

void ChangeReservation(const JobSnapshot& snapshot, const Plan& plan, WriteDecision* write) {
  if (!IsStarted(snapshot.job)) return;
  if (LacksCapacity(snapshot, plan)) {
    StopClock(snapshot, write);
  } else {
    write->reservation = ReservationOf(plan, snapshot.options->platform);
    write->seconds =
        SecondsLeft(plan.predicted.seconds, ActiveSeconds(snapshot.job, snapshot.wall));
  }
}

}  // namespace lambdadnn
