// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/snapshot.h"

#include <algorithm>
#include <span>

namespace lambdadnn {

namespace {

const Platform& Narrowed(const std::shared_ptr<const PlatformView>& view,
                         const JobSnapshot& snapshot) {
  return view == nullptr ? snapshot.options->platform : view->narrowed.platform;
}

}  // namespace

const Platform& PlatformOf(const JobSnapshot& snapshot) {
  return Narrowed(snapshot.observations->platform, snapshot);
}

const Platform& ProfilePlatformOf(const JobSnapshot& snapshot) {
  return Narrowed(snapshot.observations->profile_platform, snapshot);
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
  // Revisions before the first record are another job's, or were dropped from the history.
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
