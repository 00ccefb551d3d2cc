// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/profile_source.h"

#include <cmath>

#include "common/base/text.h"

namespace lambdadnn {

Decision UseGivenProfile(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  if (job.status.profile.has_value() || !job.spec.profile.has_value()) return std::nullopt;
  WriteDecision given;
  given.why = "given profile";
  given.early = true;
  given.profile = job.spec.profile;
  DoubtProfile(snapshot,
               "spec.profile says of itself that its rates were " +
                   FormatDouble(std::round(100 * job.spec.profile->residual)) + " % off",
               &given);
  return std::vector<Action>{given};
}

Decision UseCachedProfile(const JobSnapshot& snapshot) {
  if (snapshot.job.status.profile.has_value()) return std::nullopt;
  if (!snapshot.memo->profile_cache_read) return std::vector<Action>{ReadProfileCache{}};
  if (!snapshot.memo->cached_profile.has_value()) return std::nullopt;
  WriteDecision cached;
  cached.why = "cached profile";
  cached.early = true;
  cached.profile = snapshot.memo->cached_profile;
  return std::vector<Action>{cached};
}

void DoubtProfile(const JobSnapshot& snapshot, const std::string& why, WriteDecision* write) {
  if (write->profile->residual <= snapshot.options->max_profile_residual) return;
  write->conditions.push_back(MakeCondition(
      kConditionDegraded, true, Reason::kProfileUncertain,
      why + "; predictions may be off by as much: profile again on a quieter machine, narrow "
            "spec.functions.memory, or give spec.profile"));
}

}  // namespace lambdadnn
