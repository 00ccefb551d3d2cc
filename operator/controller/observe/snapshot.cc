// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/snapshot.h"

#include <algorithm>
#include <span>

namespace lambdadnn {

const Platform& PlatformOf(const JobSnapshot& snapshot) {
  return snapshot.platform == nullptr ? snapshot.options->platform
                                      : snapshot.platform->narrowed.platform;
}

const Platform& ProfilePlatformOf(const JobSnapshot& snapshot) {
  return snapshot.profile_platform == nullptr ? snapshot.options->platform
                                              : snapshot.profile_platform->narrowed.platform;
}

std::optional<Round> CurrentRound(const Job& job) {
  if (!job.status.plan.has_value()) return std::nullopt;
  return Round{job.status.plan->revision, job.status.execution.incarnation,
               job.status.execution.first_iteration};
}

namespace {

// `in_force`: the last of the records that count, and where it begins.
bool LiesOnTheWay(std::span<const PlanRecord> history, int in_force, int64_t begin,
                  const CheckpointReference& checkpoint) {
  const int revision = checkpoint.plan_revision;
  if (revision >= in_force) return revision == in_force;
  int64_t end = begin;
  // Before the first record lies another job's work, or what the log no longer holds.
  bool known = history.empty() || revision < history.front().revision;
  for (const PlanRecord& record : history) {
    if (record.revision > revision) end = std::min(end, record.first_iteration);
    known = known || record.revision == revision;
  }
  return known && checkpoint.iteration <= end;
}

}  // namespace

bool IsOfThePlans(const Job& job, const CheckpointReference& checkpoint) {
  if (!job.status.plan.has_value()) return false;
  const Plan& plan = *job.status.plan;
  return LiesOnTheWay(job.status.plan_history, plan.revision, plan.first_iteration, checkpoint);
}

bool IsOfTheEarlierPlans(const Job& job, const CheckpointReference& checkpoint) {
  const std::span<const PlanRecord> history = job.status.plan_history;
  // Any of them may have been replaced before it had a checkpoint.
  for (size_t count = 1; count < history.size(); ++count) {
    const PlanRecord& last = history[count - 1];
    if (LiesOnTheWay(history.first(count), last.revision, last.first_iteration, checkpoint)) {
      return true;
    }
  }
  return false;
}

bool InRound(const SliceFact& slice, const Round& round) {
  return slice.role.kind != RoleKind::kProfile && slice.plan_revision == round.plan_revision &&
         slice.incarnation == round.incarnation && slice.first_iteration == round.first_iteration;
}

bool FoundDataLoss(const Facts& facts, const Round& round) {
  return std::any_of(facts.slices.begin(), facts.slices.end(), [&](const auto& entry) {
    const SliceFact& slice = entry.second;
    return InRound(slice, round) && slice.record.has_value() &&
           slice.record->error.code() == StatusCode::kDataLoss;
  });
}

bool IsGone(const Facts& facts, const std::string& uid) {
  const auto found = facts.instances.find(uid);
  return found == facts.instances.end() || found->second.gone.has_value();
}

bool MayRun(const SliceFact& slice, const Facts& facts) {
  if (slice.record.has_value() || slice.phase == SlicePhase::kRefused) return false;
  return !IsGone(facts, slice.instance_uid);
}

std::vector<const InstanceFact*> LiveInstances(const Facts& facts, const std::string& group) {
  std::vector<const InstanceFact*> live;
  for (const auto& [uid, fact] : facts.instances) {
    if (!fact.gone.has_value() && fact.instance.group == group) live.push_back(&fact);
  }
  return live;
}

std::vector<const InstanceFact*> ReadyInstances(const Facts& facts, const std::string& group) {
  std::vector<const InstanceFact*> ready;
  for (const InstanceFact* fact : LiveInstances(facts, group)) {
    if (fact->instance.phase == FunctionPhase::kReady) ready.push_back(fact);
  }
  return ready;
}

bool AnyLiveInstance(const Facts& facts) {
  for (const auto& [uid, fact] : facts.instances) {
    if (!fact.gone.has_value()) return true;
  }
  return false;
}

bool IsRefusedStart(const Facts& facts) {
  return facts.start_since.has_value() &&
         facts.start_error.code() == StatusCode::kResourceExhausted;
}

bool IsStarted(const Job& job) { return !job.status.start_time.empty(); }

double ActiveSeconds(const Job& job, WallTime wall) {
  double seconds = job.status.execution.active_seconds;
  WallTime start;
  if (!job.status.start_time.empty() && ParseRfc3339(job.status.start_time, &start)) {
    seconds += std::max(0.0, ToSeconds(wall - start));
  }
  return seconds;
}

}  // namespace lambdadnn
