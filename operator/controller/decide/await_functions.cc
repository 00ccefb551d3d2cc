// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/await_functions.h"

#include <algorithm>

#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/round_view.h"
#include "operator/controller/decide/start_back_off.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {

bool EndedEarly(const InstanceFact& fact) {
  return fact.gone.has_value() && !fact.ready.has_value() && IsOwnMaking(fact.instance.end);
}

std::vector<GroupNeed> PlannedNeeds(const JobSnapshot& snapshot) {
  std::vector<GroupNeed> needs;
  for (const FunctionGroup& group : PlannedGroups(snapshot.job, snapshot.options->platform, {})) {
    needs.push_back({group.name, group.count});
  }
  return needs;
}

FunctionStarts ViewStarts(const Observations& observed, std::span<const GroupNeed> needs) {
  FunctionStarts starts;
  for (const GroupNeed& need : needs) {
    const auto wanted = static_cast<size_t>(need.count);
    starts.all_ready = starts.all_ready && ReadyInstances(observed, need.group).size() >= wanted;
    starts.all_there = starts.all_there && LiveInstances(observed, need.group).size() >= wanted;
    for (const auto& [uid, fact] : observed.instances) {
      if (fact.instance.group != need.group || !EndedEarly(fact)) continue;
      ++starts.ended_early;
      starts.last_ended = &fact;
    }
  }
  return starts;
}

Action GiveUpStart(const JobSnapshot& snapshot) {
  return DeleteAllGroups{StartBackOffSeconds(*snapshot.options, snapshot.memo->start_attempts)};
}

std::vector<Action> AwaitFunctions(const JobSnapshot& snapshot, const FunctionStarts& starts,
                                   const Action& ensure) {
  const Memo& memo = *snapshot.memo;
  const ControllerOptions& options = *snapshot.options;
  if (starts.ended_early >= options.max_start_failures) {
    const FunctionInstance& last = starts.last_ended->instance;
    return {FailJob(Reason::kFunctionStartFailed, "functions end before they are ready (" +
                                                      last.Why() + "): " + last.last_log_line)};
  }
  if (memo.start_error.code() == StatusCode::kUnimplemented) {
    return {FailJob(Reason::kFunctionStartFailed,
                    "the platform does not run these functions: " + memo.start_error.message())};
  }
  if (IsRefusedStart(memo)) return {GiveUpStart(snapshot)};
  if (memo.start_again_at.has_value()) return ReleaseReservation(snapshot);
  if (memo.start_since.has_value() &&
      snapshot.now - *memo.start_since > FromSeconds(options.ready_timeout_seconds)) {
    return {GiveUpStart(snapshot)};
  }
  if (starts.all_there && memo.start_since.has_value()) return {};
  return {ensure};
}

}  // namespace lambdadnn
