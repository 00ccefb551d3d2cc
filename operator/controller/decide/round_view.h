// SPDX-License-Identifier: Apache-2.0
// The state of a round of slices, derived from what was observed. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

// Whether the job itself made the function end. All else (kills, evictions, lost nodes, deletions)
// is the platform's doing and never counts as a failure.
bool IsOwnMaking(FunctionEnd end);

// Why a round cannot go on.
struct RoundBreak {
  Reason reason = Reason::kFunctionLost;
  std::string message;
  bool counts = false;     // a failure of the job's own making: counts against backoffLimit
  bool permanent = false;  // running it again cannot help
  Instant at{};
  std::string unusable_uid;  // of a function to be deleted, if any
};

struct RoundView {
  struct Entry {
    Role role;
    int attempt = 1;
    std::string instance_uid;          // that the round is bound to; empty while it is not
    const SliceFact* slice = nullptr;  // null: not started, or not joined yet
    std::optional<RoundBreak> broken;  // why the round cannot go on with this function
  };
  std::vector<Entry> entries;  // one per planned role, in order
  bool any_started = false;
  bool all_ended = false;  // every role has a record, none of them failed
  bool finished = false;   // all ended as kFinished
  int64_t next_iteration = 0;
  Instant ended_at{};  // of all_ended: when this process heard of the last one
  // Of all_ended and not finished: the checkpoint at next_iteration, if a record names it.
  std::optional<CheckpointReference> checkpoint;
  std::optional<RoundBreak> broken;
  // Functions that ran out of memory and were killed.
  bool worker_too_small = false;
  bool server_too_small = false;
};

RoundView ViewRound(const JobSnapshot& snapshot, const Round& round);

}  // namespace lambdadnn
