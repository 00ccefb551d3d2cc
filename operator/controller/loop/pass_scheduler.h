// SPDX-License-Identifier: Apache-2.0
// When the next pass over a job is due, and which passes may write mere progress. The limits are
// shared by all jobs: many jobs neither flood the API server nor delay those that wait.
// Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <set>

#include "operator/controller/apply/pass.h"
#include "operator/controller/options.h"

namespace lambdadnn {

// Nothing will change by itself.
inline constexpr Duration kNever = std::chrono::hours(24 * 365);

class PassScheduler {
 public:
  // `options` outlive this. `behind`: how late passes are (null: they never are).
  PassScheduler(const ControllerOptions& options, std::function<Duration()> behind)
      : options_(options), behind_(std::move(behind)) {}

  // Until the next pass over the job, after this one.
  Duration NextResync(const Pass& pass);
  // Whether to write `status`, which the pass computed. `differs` says whether a status differs
  // from what is written in more than progress.
  bool IsWriteDue(const Pass& pass, const JobStatus& status,
                  const std::function<bool(const JobStatus&)>& differs);
  // Notes whether this job joins running slices, before a pass ends early.
  void NoteJoining(const Pass& pass);
  void Drop(const ObjectName& name);
  size_t in_progress() const;

 private:
  // Notes whether this job joins running slices; returns whether any job does.
  bool AnyJoining(const ObjectName& name, bool joins);
  // Between two writes of mere progress: longer the more jobs make progress.
  Duration ProgressInterval(const Job& job);
  // Takes one of the writes of progress that all jobs together have a second, if one is left.
  bool TakeProgressWrite(Instant now);
  // Between two passes over a job that may change without an event; grows with the number of those.
  Duration Tick(const Pass& pass);

  const ControllerOptions& options_;
  const std::function<Duration()> behind_;
  mutable std::mutex mutex_;
  std::set<ObjectName> in_progress_;
  std::set<ObjectName> ticking_;
  std::set<ObjectName> joining_;
  Instant progress_write_{};  // when the next one of all jobs is due
};

}  // namespace lambdadnn
