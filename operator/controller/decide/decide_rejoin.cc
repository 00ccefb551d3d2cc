// SPDX-License-Identifier: Apache-2.0
// A worker that the platform took away is started again in the same round: the weights of the
// iteration at which the others wait for it are still there (docs/design/001-data-plane.md).
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "operator/controller/decide/await_functions.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/fingerprint_check.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

// Taken away by the platform, and not by what the job itself did or was refused.
bool IsLoss(const RoundBreak& broken) {
  const bool taken =
      broken.reason == Reason::kFunctionLost || broken.reason == Reason::kFunctionSilent;
  return taken && !broken.counts && !broken.permanent;
}

Instant GoneSince(const JobSnapshot& snapshot, const RoundView::Entry& entry) {
  const auto found = snapshot.observations->instances.find(entry.instance_uid);
  if (found == snapshot.observations->instances.end()) return entry.broken->at;
  return found->second.gone.value_or(snapshot.now);
}

// The lost workers, if nothing else keeps the round from going on.
std::vector<const RoundView::Entry*> LostWorkers(const JobSnapshot& snapshot,
                                                 const RoundView& view) {
  if (!IsLoss(*view.broken)) return {};
  std::vector<const RoundView::Entry*> lost;
  for (const RoundView::Entry& entry : view.entries) {
    if (!entry.broken.has_value()) continue;
    const Duration since = snapshot.now - GoneSince(snapshot, entry);
    if (entry.role.kind != RoleKind::kWorker || !IsLoss(*entry.broken) ||
        since >= FromSeconds(snapshot.options->rejoin_seconds)) {
      return {};
    }
    lost.push_back(&entry);
  }
  return lost;
}

// With ready instances in place of the lost ones; empty while there are too few.
std::vector<BoundFunction> Rebind(const JobSnapshot& snapshot,
                                  const std::vector<const RoundView::Entry*>& lost) {
  std::vector<BoundFunction> functions = snapshot.job.status.execution.functions;
  std::set<std::string> bound;
  for (const BoundFunction& function : functions) bound.insert(function.uid);
  const std::string group = WorkersGroupName(snapshot.job.status.plan->revision);
  std::vector<std::string> spare;
  for (const InstanceFact* const ready : ReadyInstances(*snapshot.observations, group)) {
    if (!bound.contains(ready->instance.uid)) spare.push_back(ready->instance.uid);
  }
  if (spare.size() < lost.size()) return {};
  for (size_t i = 0; i < lost.size(); ++i) {
    const std::string name = lost[i]->role.Name();
    for (BoundFunction& function : functions) {
      if (function.role == name) function = {name, function.attempt + 1, spare[i]};
    }
  }
  return functions;
}

WriteDecision Rejoin(const JobSnapshot& snapshot, std::vector<BoundFunction> functions,
                     const RoundBreak& broken) {
  WriteDecision write;
  write.why = "another function: " + std::string(ReasonText(broken.reason)) + ": " + broken.message;
  write.execution = snapshot.job.status.execution;
  write.execution->functions = std::move(functions);
  write.conditions.push_back(
      MakeCondition(kConditionDegraded, true, broken.reason,
                    broken.message + "; another function goes on where it was, the others wait"));
  return write;
}

}  // namespace

std::optional<std::vector<Action>> DecideRejoin(const JobSnapshot& snapshot,
                                                const RoundView& view) {
  const Observations& observed = *snapshot.observations;
  // A worker that is lost with servers in its function takes these along.
  if (snapshot.job.status.plan->aggregation.placement != Placement::kDedicated) return std::nullopt;
  if (observed.credentials_changed || observed.store_moved) return std::nullopt;
  const std::vector<const RoundView::Entry*> lost = LostWorkers(snapshot, view);
  if (lost.empty()) return std::nullopt;
  for (const RoundView::Entry* const entry : lost) {
    const RoundBreak& broken = *entry->broken;
    if (!broken.unusable_uid.empty()) {
      return std::vector<Action>{
          DeleteFunction{broken.unusable_uid, broken.message, broken.reason}};
    }
  }
  std::vector<BoundFunction> functions = Rebind(snapshot, lost);
  if (functions.empty()) {
    const FunctionStarts starts = ViewStarts(observed, PlannedNeeds(snapshot));
    // What such a function lacks is found out, and counted, where all start anew.
    if (starts.ended_early > 0) return std::nullopt;
    return AwaitFunctions(snapshot, starts, EnsurePlannedGroups{});
  }
  const FingerprintCheck check = CheckFingerprints(snapshot, functions);
  if (!check.answered) return check.questions;
  if (!check.difference.empty()) return std::nullopt;
  return std::vector<Action>{Rejoin(snapshot, std::move(functions), *view.broken)};
}

}  // namespace lambdadnn
