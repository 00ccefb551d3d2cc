// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/observed_starts.h"

#include <algorithm>

#include "operator/api/conditions.h"
#include "operator/controller/planning/profile_fit.h"

namespace lambdadnn {
namespace {

struct Interval {
  Instant begin{};
  Instant end{};
};

// While it started. Of one that is not ready, until its end or now.
Interval StartOf(const InstanceFact& fact) {
  if (!fact.ready.has_value()) return {fact.first_seen, fact.gone.value_or(Instant::max())};
  return {*fact.ready - FromSeconds(StartSeconds(fact)), *fact.ready};
}

bool IsOfKind(const SliceFact& slice, GroupKind kind) {
  switch (slice.role.kind) {
    case RoleKind::kProfile:
      return kind == GroupKind::kProfile && slice.role.rank == 0;
    case RoleKind::kWorker:
      return kind == GroupKind::kWorkers;
    case RoleKind::kServer:
      return kind == GroupKind::kServers;
  }
  return false;
}

}  // namespace

double StartSeconds(const InstanceFact& fact) {
  // Kubernetes tells whole seconds, and this process may have come late.
  const Instant since = fact.asked.value_or(fact.first_seen);
  const double seen = fact.ready.has_value() ? ToSeconds(*fact.ready - since) : 0;
  return std::max(seen, fact.instance.cold_start_seconds);
}

std::optional<double> ReleaseSeconds(const InstanceFact& fact, Instant work_end) {
  if (!fact.gone.has_value() || *fact.gone <= work_end) return std::nullopt;
  return ToSeconds(*fact.gone - work_end);
}

std::optional<Instant> EndOfWork(const Observations& observed, GroupKind kind) {
  std::optional<Instant> end;
  for (const auto& [invocation, slice] : observed.slices) {
    if (!IsOfKind(slice, kind)) continue;
    const Instant ended = slice.ended.value_or(slice.last_heard);
    end = std::max(end.value_or(ended), ended);
  }
  return end;
}

StartedAtOnce CountStarts(const Observations& observed, const InstanceFact& fact) {
  const Interval own = StartOf(fact);
  StartedAtOnce count;
  for (const auto& [uid, other] : observed.instances) {
    const Interval others = StartOf(other);
    if (uid == fact.instance.uid || others.begin >= own.end || own.begin >= others.end) continue;
    ++count.on_all;
    if (other.instance.host.node == fact.instance.host.node) ++count.on_node;
  }
  return count;
}

std::vector<StartSample> ObservedStarts(const JobSnapshot& snapshot, GroupKind kind,
                                        const WorkloadProfile& profile) {
  const Observations& observed = *snapshot.observations;
  const Platform& platform =
      kind == GroupKind::kProfile ? ProfilePlatformOf(snapshot) : PlatformOf(snapshot);
  const bool counts =
      kind == GroupKind::kProfile || HasCondition(snapshot.job, kConditionSuccessCriteriaMet);
  const std::optional<Instant> work_end = counts ? EndOfWork(observed, kind) : std::nullopt;
  std::vector<StartSample> samples;
  for (const auto& [uid, fact] : observed.instances) {
    if (KindOfGroup(fact.instance.group) != kind) continue;
    const StartedAtOnce at_once = CountStarts(observed, fact);
    const InstanceHost& host = fact.instance.host;
    StartSample sample;
    sample.kind = {snapshot.options->backend, host.image, host.node_kind,
                   PodsAtOnceClass(at_once.on_node)};
    const double start = StartSeconds(fact);
    const double slowdown = StartSlowdownAt(platform, at_once.on_all, fact.memory_mib);
    if (start > 0 && (slowdown <= 0 || profile.start_cpu_seconds > 0)) {
      sample.cold_start_seconds = WithAWholeCore(start, profile.start_cpu_seconds, platform,
                                                 at_once.on_all, fact.memory_mib);
    }
    if (work_end.has_value()) sample.release_seconds = ReleaseSeconds(fact, *work_end);
    if (sample.cold_start_seconds || sample.release_seconds) samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<StartSample> ObservedStarts(const JobSnapshot& snapshot, GroupKind kind) {
  return ObservedStarts(snapshot, kind, snapshot.job.status.profile.value_or(WorkloadProfile()));
}

}  // namespace lambdadnn
