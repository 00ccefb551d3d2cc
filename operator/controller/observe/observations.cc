// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/observations.h"

#include <algorithm>

namespace lambdadnn {

bool InRound(const SliceFact& slice, const Round& round) {
  return slice.role.kind != RoleKind::kProfile && slice.plan_revision == round.plan_revision &&
         slice.incarnation == round.incarnation && slice.first_iteration == round.first_iteration;
}

bool FoundDataLoss(const Observations& observed, const Round& round) {
  return std::any_of(observed.slices.begin(), observed.slices.end(), [&](const auto& entry) {
    const SliceFact& slice = entry.second;
    return InRound(slice, round) && slice.record != nullptr &&
           slice.record->error.code() == StatusCode::kDataLoss;
  });
}

bool IsGone(const Observations& observed, const std::string& uid) {
  const auto found = observed.instances.find(uid);
  return found == observed.instances.end() || found->second.gone.has_value();
}

bool MayRun(const SliceFact& slice, const Observations& observed) {
  if (slice.record != nullptr || slice.phase == SlicePhase::kRefused) return false;
  return !IsGone(observed, slice.instance_uid);
}

std::vector<const InstanceFact*> LiveInstances(const Observations& observed,
                                               const std::string& group) {
  std::vector<const InstanceFact*> live;
  for (const auto& [uid, fact] : observed.instances) {
    if (!fact.gone.has_value() && fact.instance.group == group) live.push_back(&fact);
  }
  return live;
}

std::vector<const InstanceFact*> ReadyInstances(const Observations& observed,
                                                const std::string& group) {
  std::vector<const InstanceFact*> ready;
  for (const InstanceFact* fact : LiveInstances(observed, group)) {
    if (fact->instance.phase == FunctionPhase::kReady) ready.push_back(fact);
  }
  return ready;
}

bool AnyLiveInstance(const Observations& observed) {
  for (const auto& [uid, fact] : observed.instances) {
    if (!fact.gone.has_value()) return true;
  }
  return false;
}

}  // namespace lambdadnn
