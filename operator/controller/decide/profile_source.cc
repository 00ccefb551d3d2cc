// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/profile_source.h"

#include <cmath>

#include "common/base/text.h"
#include "operator/controller/planning/profile_fit.h"
#include "operator/resources/slice_requests.h"

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

Decision UseKeptProfile(const JobSnapshot& snapshot) {
  if (snapshot.job.status.profile.has_value()) return std::nullopt;
  const Memo& memo = *snapshot.memo;
  if (!memo.measurements_read) return std::vector<Action>{ReadMeasurements{}};
  if (!memo.kept_profile.has_value()) return std::nullopt;
  const MeasuredOn& on = memo.kept_profile->on;
  // The cluster has room for larger functions now: their rates were not measured.
  const ProfilePlan plan = MakeProfilePlan(snapshot.job.spec, ProfilePlatformOf(snapshot));
  if (plan.memory_mib.front() > on.largest_mib) return std::nullopt;
  WriteDecision kept;
  kept.why = "kept profile";
  kept.early = true;
  kept.profile = memo.kept_profile->profile;
  kept.measured_on = on;
  UseObservedStarts(snapshot, on, &*kept.profile);
  return std::vector<Action>{kept};
}

void UseObservedStarts(const JobSnapshot& snapshot, const MeasuredOn& on,
                       WorkloadProfile* profile) {
  const StartKind kind = {snapshot.options->backend, on.image, on.node_kind,
                          PodsAtOnceClass(ExpectedPodsAtOnce(
                              snapshot.job.spec, ProfilePlatformOf(snapshot), on.pods_at_once))};
  UseStartTimes(snapshot.memo->start_record, kind, profile);
}

std::optional<DropKeptProfile> DropOutdatedProfile(const JobSnapshot& snapshot,
                                                   const std::vector<BoundFunction>& bound) {
  const std::optional<MeasuredOn>& on = snapshot.memo->profile_kept_on;
  if (!on.has_value()) return std::nullopt;
  const std::vector<Role> roles = PlannedRoles(*snapshot.job.status.plan);
  for (size_t i = 0; i < bound.size(); ++i) {
    if (roles[i].kind != RoleKind::kWorker) continue;
    const InstanceFact& worker = snapshot.observations->instances.at(bound[i].uid);
    const std::string difference = DifferenceFrom(
        *on, worker.instance.host, worker.fingerprint.value_or(NumericsFingerprint()));
    if (!difference.empty()) {
      return DropKeptProfile{"the profile kept of such jobs is out of date: " + roles[i].Name() +
                             " " + difference};
    }
  }
  return std::nullopt;
}

void DoubtProfile(const JobSnapshot& snapshot, const std::string& why, WriteDecision* write) {
  if (write->profile->residual <= snapshot.options->max_profile_residual) return;
  write->conditions.push_back(MakeCondition(
      kConditionDegraded, true, Reason::kProfileUncertain,
      why + "; predictions may be off by as much: profile again on a quieter machine, narrow "
            "spec.functions.memory, or give spec.profile"));
}

}  // namespace lambdadnn
