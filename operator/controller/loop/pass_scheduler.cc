// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/loop/pass_scheduler.h"

#include <algorithm>

#include "operator/api/conditions.h"
#include "operator/controller/decide/status.h"

namespace lambdadnn {
namespace {

// Resyncs of all jobs together that may change without an event: the interval grows with their
// number. A change of the object, and a slice that begins or ends, cause a pass of their own.
constexpr double kMaxResyncsPerSecond = 200;
// While passes are this late, progress is written only when the shown one is older than
// kOldProgress: other writes come first.
constexpr Duration kBehind = std::chrono::seconds(1);
constexpr Duration kOldProgress = std::chrono::seconds(30);
// Writes of progress that were not used are available later, at most those of this long.
constexpr Duration kProgressBurst = std::chrono::seconds(1);
// Until the next pass over a job that is held by a few others; longer when there are more.
constexpr Duration kMoment = std::chrono::milliseconds(50);
constexpr int kFew = 4;
constexpr Duration kLongestHold = std::chrono::seconds(1);

// A function of the job is starting or terminating.
bool AnyInTransit(const Observations& observed) {
  return std::any_of(observed.instances.begin(), observed.instances.end(), [](const auto& entry) {
    const FunctionPhase phase = entry.second.instance.phase;
    return phase == FunctionPhase::kPending || phase == FunctionPhase::kTerminating;
  });
}

// Waits until the cluster allows a plan.
bool WaitsForCluster(const Job& job) {
  const Condition* provisioned = FindCondition(job, kConditionProvisioned);
  return provisioned != nullptr && HasReason(*provisioned, Reason::kClusterTooSmall);
}

bool IsWaiting(const Job& job) {
  const Condition* ready = FindCondition(job, kConditionReady);
  return !IsStarted(job) && ready != nullptr && !HasCondition(job, kConditionSuspended);
}

}  // namespace

void PassScheduler::NoteJoining(const Pass& pass) {
  (void)AnyJoining(pass.name, IsJoining(pass.snapshot));
}

bool PassScheduler::AnyJoining(const ObjectName& name, bool joins) {
  const std::lock_guard lock(mutex_);
  if (joins) {
    joining_.insert(name);
  } else {
    joining_.erase(name);
  }
  return !joining_.empty();
}

Duration PassScheduler::ProgressInterval(const Job& job) {
  const ObjectName name{job.metadata.namespace_name, job.metadata.name};
  const std::lock_guard lock(mutex_);
  if (job.status.phase == "Running" || job.status.phase == "Profiling" || IsWaiting(job)) {
    in_progress_.insert(name);
  } else {
    in_progress_.erase(name);
  }
  const double share =
      static_cast<double>(in_progress_.size()) / options_.max_progress_writes_per_second;
  return FromSeconds(std::max(options_.progress_seconds, share));
}

bool PassScheduler::TakeProgressWrite(Instant now) {
  const std::lock_guard lock(mutex_);
  if (now < progress_write_) return false;
  const Duration each = FromSeconds(1 / options_.max_progress_writes_per_second);
  progress_write_ = std::max(progress_write_, now - kProgressBurst) + each;
  return true;
}

Duration PassScheduler::Tick(const Pass& pass) {
  const std::lock_guard lock(mutex_);
  ticking_.insert(pass.name);
  const double share = static_cast<double>(ticking_.size()) / kMaxResyncsPerSecond;
  const double tick = AnyInTransit(*pass.snapshot.observations) ? options_.starting_tick_seconds
                                                                : options_.tick_seconds;
  return FromSeconds(std::max(tick, share));
}

Duration PassScheduler::NextResync(const Pass& pass) {
  const Job& job = pass.snapshot.job;
  const Observations& observed = *pass.snapshot.observations;
  const Memo& memo = *pass.snapshot.memo;
  if (pass.gone) return kNever;
  const bool deleted = !job.metadata.deletion_timestamp.empty();
  const bool finished = IsFinished(job);
  if (pass.held) {
    return std::min<Duration>(kLongestHold,
                              kMoment * (1 + pass.snapshot.observations->queue.undecided / kFew));
  }
  const bool waiting = !deleted && !finished && IsWaiting(job) && !AnyLiveInstance(observed);
  const bool resting = job.status.phase == "Suspended" || WaitsForCluster(job) ||
                       (memo.admission.has_value() && !memo.admission->ok());
  if (deleted || (finished ? AnyLiveInstance(observed) : !resting && !waiting)) return Tick(pass);
  {
    const std::lock_guard lock(mutex_);
    ticking_.erase(pass.name);
  }
  if (waiting) {
    const Duration longest = FromSeconds(options_.waiting_tick_seconds);
    if (!memo.start_again_at.has_value()) return longest;
    return std::clamp<Duration>(*memo.start_again_at - pass.snapshot.now,
                                FromSeconds(options_.tick_seconds), longest);
  }
  if (!finished) return FromSeconds(options_.idle_tick_seconds);
  const Duration tick = FromSeconds(options_.tick_seconds);
  Duration next = FromSeconds(options_.finished_tick_seconds);
  WallTime completed;
  if (!ParseRfc3339(job.status.completion_time, &completed)) return next;
  const Duration age = pass.snapshot.wall - completed;
  const Duration settle = FromSeconds(options_.cleanup_settle_seconds);
  if (age < settle) next = std::min(next, std::max(tick, settle - age));
  if (!job.spec.ttl_seconds_after_finished.has_value()) return next;
  return std::clamp<Duration>(FromSeconds(*job.spec.ttl_seconds_after_finished) - age, tick, next);
}

bool PassScheduler::IsWriteDue(const Pass& pass, const JobStatus& status,
                               const std::function<bool(const JobStatus&)>& differs) {
  const Job& job = pass.snapshot.job;
  const Duration since = pass.snapshot.now - pass.memory->progress_written;
  const bool behind = behind_ != nullptr && behind_() >= kBehind;
  const bool joins = IsJoining(pass.snapshot);
  const bool others_first = (AnyJoining(pass.name, joins) || behind) && since < kOldProgress;
  JobStatus news = status;
  // The streams of all jobs are joined before the leader is written into any of them.
  if (joins || others_first) news.execution.leader_epoch = job.status.execution.leader_epoch;
  const bool in_time = !joins && (!behind || since >= kOldProgress);
  // That it trains at all is what its user waits for.
  const bool begins = job.status.progress.iteration == 0 && status.progress.iteration > 0;
  const bool due = in_time && (since >= ProgressInterval(job) || begins);
  return differs(news) || (due && TakeProgressWrite(pass.snapshot.now));
}

void PassScheduler::Drop(const ObjectName& name) {
  const std::lock_guard lock(mutex_);
  in_progress_.erase(name);
  ticking_.erase(name);
  joining_.erase(name);
}

size_t PassScheduler::in_progress() const {
  const std::lock_guard lock(mutex_);
  return in_progress_.size();
}

}  // namespace lambdadnn
