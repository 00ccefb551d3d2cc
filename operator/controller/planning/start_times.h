// SPDX-License-Identifier: Apache-2.0
// How long workers take to start and to be released, over the jobs of a store: the last few of each
// kind of start, and the quartiles that take the place of what one job has measured
// (docs/theory.md, section 3).
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/plan/workload.h"
#include "operator/api/backend_kind.h"
#include "operator/api/job.h"

namespace lambdadnn {

// Starts of one kind are comparable: many pods at once share a node's disk and cores.
struct StartKind {
  BackendKind backend = BackendKind::kLocal;
  std::string image;      // "" = not told, as of processes
  std::string node_kind;  // "" = not told
  int pods_at_once = 1;   // on a node: 1, 2, 4, 8, ... (PodsAtOnceClass)
  friend bool operator==(const StartKind&, const StartKind&) = default;
};
// The least power of two that is no less; 1 for less than one.
int PodsAtOnceClass(int pods);

// What was seen of one worker.
struct StartSample {
  StartKind kind;
  std::optional<double> cold_start_seconds;  // with a core of its own (WithAWholeCore)
  std::optional<double> release_seconds;
  friend bool operator==(const StartSample&, const StartSample&) = default;
};

// The newest kMaxKinds kinds, and the newest kMaxTimes of each.
class StartRecord {
 public:
  static constexpr size_t kMaxKinds = 64;
  static constexpr size_t kMaxTimes = 32;
  // The largest text that is read; kMaxKinds full ones with images of 1 KiB take less.
  static constexpr uint64_t kMaxBytes = uint64_t{256} << 10;

  // Of any bytes, which somebody else may have written: kInvalidArgument with a sentence.
  static Result<StartRecord> Decode(std::string_view text);
  std::string Encode() const;

  // The oldest are dropped.
  void Add(const std::vector<StartSample>& samples);

  struct Times {
    StartKind kind;
    std::vector<double> cold_starts;  // seconds, newest last; likewise
    std::vector<double> releases;
    friend bool operator==(const Times&, const Times&) = default;
  };
  const std::vector<Times>& kinds() const { return kinds_; }  // newest first
  const Times* Find(const StartKind& kind) const;             // null = none was seen

 private:
  std::vector<Times> kinds_;
};

// With fewer observations one measurement of the job's own is as good.
inline constexpr size_t kLeastStarts = 3;

// Replaces what `profile` says of cold starts and of releases by the medians of this kind, each
// where at least kLeastStarts were observed; the deviation is that of a normal distribution with
// these quartiles, to which a rare start (an image that is pulled) does not count.
void UseStartTimes(const StartRecord& record, const StartKind& kind, WorkloadProfile* profile);

// How many pods will start at once on a node: those of a plan that the spec fixes, spread over the
// nodes; otherwise `measured`, as many as when the profile was measured, since the plan follows
// from the profile.
int ExpectedPodsAtOnce(const JobSpec& spec, const Platform& platform, int measured);

}  // namespace lambdadnn
