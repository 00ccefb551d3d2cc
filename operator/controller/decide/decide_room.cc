// SPDX-License-Identifier: Apache-2.0
// Room for all functions of a job before the first of them is asked for, in the order of the queue
// (room.h). The job's clock (status.startTime) runs only while it has room.
#include "operator/controller/decide/decide.h"

namespace lambdadnn {
namespace {

bool NeedsMore(const Room& other, const Room& held) {
  return other.memory_mib > held.memory_mib || other.milli_cpu > held.milli_cpu;
}

bool MustWait(const JobSnapshot& snapshot, const Plan& plan) {
  const Platform& platform = snapshot.options->platform;
  const Room room = RoomOf(plan, platform);
  return IsStarted(snapshot.job) && NeedsMore(room, RoomOf(snapshot.job, platform)) &&
         !HasRoom(snapshot.queue, room);
}

void StopClock(const JobSnapshot& snapshot, WriteDecision* write) {
  write->start_time = "";
  write->execution->active_seconds = ActiveSeconds(snapshot.job, snapshot.wall);
}

}  // namespace

std::optional<std::vector<Action>> AwaitRoom(const JobSnapshot& snapshot) {
  if (IsStarted(snapshot.job)) return std::nullopt;
  const Facts& facts = snapshot.facts;
  if (AnyLiveInstance(facts)) return std::vector<Action>{DeleteAllGroups{}};
  if (facts.start_again_at.has_value() && snapshot.now < *facts.start_again_at) {
    return std::vector<Action>{};
  }
  WriteDecision start;
  start.why = "start";
  start.early = true;
  start.start_time = FormatRfc3339(snapshot.wall);
  start.room = RoomOf(snapshot.job, snapshot.options->platform);
  if (!HasRoom(snapshot.queue, *start.room)) return std::vector<Action>{};
  return std::vector<Action>{start};
}

std::vector<Action> GiveBackRoom(const JobSnapshot& snapshot) {
  if (AnyLiveInstance(snapshot.facts)) return {DeleteAllGroups{}};
  WriteDecision back;
  back.why = "not all functions came";
  back.execution = snapshot.job.status.execution;
  back.start_failed = true;
  StopClock(snapshot, &back);
  return {back};
}

std::optional<std::vector<Action>> RestBeforeOtherRoom(const JobSnapshot& snapshot,
                                                       const Plan& plan) {
  if (!MustWait(snapshot, plan) || !AnyLiveInstance(snapshot.facts)) return std::nullopt;
  return std::vector<Action>{DeleteAllGroups{}};
}

void ChangeRoom(const JobSnapshot& snapshot, const Plan& plan, WriteDecision* write) {
  if (!IsStarted(snapshot.job)) return;
  if (MustWait(snapshot, plan)) {
    StopClock(snapshot, write);
  } else {
    write->room = RoomOf(plan, snapshot.options->platform);
  }
}

}  // namespace lambdadnn
