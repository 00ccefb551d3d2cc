// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/decide.h"

#include <algorithm>

#include "operator/api/pause.h"
#include "operator/controller/decide/policies.h"
#include "operator/controller/decide/status.h"

namespace lambdadnn {
namespace {

// accept, profile, plan, start.
constexpr int kEarlySteps = 4;

// The early step, if it is the only action.
const WriteDecision* EarlyStep(const std::vector<Action>& actions) {
  if (actions.size() != 1) return nullptr;
  const auto* write = std::get_if<WriteDecision>(&actions.front());
  return write != nullptr && write->early ? write : nullptr;
}

template <typename Field>
void Replace(const std::optional<Field>& newer, std::optional<Field>* field) {
  if (newer.has_value()) *field = newer;
}

// Adds the fields that early steps set.
void Append(const WriteDecision& next, WriteDecision* write) {
  write->why += ", " + next.why;
  Replace(next.plan, &write->plan);
  Replace(next.plan_history, &write->plan_history);
  Replace(next.profile, &write->profile);
  Replace(next.measured_on, &write->measured_on);
  Replace(next.execution, &write->execution);
  Replace(next.start_time, &write->start_time);
  Replace(next.reservation, &write->reservation);
  write->conditions.insert(write->conditions.end(), next.conditions.begin(), next.conditions.end());
}

}  // namespace

Action FailJob(Reason reason, const std::string& message) {
  WriteDecision fail;
  fail.why = "fail";
  fail.conditions.push_back(MakeCondition(kConditionFailureTarget, true, reason, message));
  return fail;
}

std::vector<Action> StopSlices(const JobSnapshot& snapshot, StopManner manner,
                               bool (*selected)(const SliceFact&, const Round&),
                               const Round& round) {
  const ControllerOptions& options = *snapshot.options;
  std::vector<Action> actions;
  for (const auto& [invocation, slice] : snapshot.observations->slices) {
    if (!selected(slice, round) || !MayRun(slice, *snapshot.observations)) continue;
    const auto older = [&](const std::optional<Instant>& since, double seconds) {
      return since.has_value() && snapshot.now - *since >= FromSeconds(seconds);
    };
    const auto told = snapshot.memo->stops.find(invocation);
    const StopSent sent = told == snapshot.memo->stops.end() ? StopSent{} : told->second;
    if (older(sent.at_once, options.stop_seconds)) {
      actions.push_back(
          DeleteFunction{slice.instance_uid, slice.role.Name() + " does not stop its slice"});
      continue;
    }
    if (sent.at_once.has_value()) continue;
    const bool graceful = manner == StopManner::kGraceful &&
                          slice.role.kind != RoleKind::kProfile &&
                          !older(sent.gracefully, options.graceful_stop_seconds);
    if (!graceful) {
      actions.push_back(StopSlice{invocation, false});
    } else if (!sent.gracefully.has_value()) {
      actions.push_back(StopSlice{invocation, true});
    }
  }
  return actions;
}

bool IsLeftAlone(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  if (!IsOurs(job, *snapshot.options)) return true;
  return (IsPaused(job) || !snapshot.unreadable.ok()) && job.metadata.deletion_timestamp.empty();
}

bool IsHeld(const JobSnapshot& snapshot) {
  return snapshot.observations->queue.unsettled && snapshot.job.status.conditions.empty();
}

std::vector<Action> Decide(const JobSnapshot& snapshot) {
  std::vector<Action> actions = AskPolicies(snapshot).actions;
  const WriteDecision* const first = EarlyStep(actions);
  if (first == nullptr || IsStarted(snapshot.job)) return actions;
  if (IsHeld(snapshot)) return {};
  WriteDecision together = *first;
  JobSnapshot after = snapshot;
  for (int steps = 1; steps < kEarlySteps && !IsStarted(after.job); ++steps) {
    after.job.status = ComputeStatus(snapshot, together);
    const std::vector<Action> more = AskPolicies(after).actions;
    const WriteDecision* const next = EarlyStep(more);
    if (next == nullptr) break;
    Append(*next, &together);
  }
  return {together};
}

}  // namespace lambdadnn
