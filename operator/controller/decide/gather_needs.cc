// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/gather_needs.h"

#include "operator/api/conditions.h"
#include "operator/controller/decide/decide.h"

namespace lambdadnn {

bool WantedFunctions(const Job& job) {
  return IsStarted(job) || job.status.profile.has_value() ||
         FindCondition(job, kConditionReady) != nullptr;
}

bool MayHaveFunctions(const Job& job) {
  return WantedFunctions(job) || !job.metadata.deletion_timestamp.empty() ||
         !job.status.completion_time.empty();
}

bool NeedsQueue(const Job& job, const Platform& platform) {
  if (IsFinished(job) || job.spec.suspend || !job.metadata.deletion_timestamp.empty()) return false;
  return !IsStarted(job) || !job.status.plan.has_value() || NeedsReplan(job, platform);
}

LimitsNeed NeedOfLimits(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  const Platform& platform = snapshot.options->platform;
  const bool planned = job.status.plan.has_value();
  const bool plans = NeedsQueue(job, platform) && (!planned || NeedsReplan(job, platform));
  if (plans) return LimitsNeed::kRequired;
  const bool lives = !IsFinished(job) && job.metadata.deletion_timestamp.empty();
  const bool known = snapshot.observations->platform != nullptr;
  return planned && lives && !known ? LimitsNeed::kIfKnown : LimitsNeed::kNone;
}

}  // namespace lambdadnn
