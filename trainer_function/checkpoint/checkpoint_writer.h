// SPDX-License-Identifier: Apache-2.0
// Writes a root's checkpoints beside its iterations (docs/design/031-background-checkpoints.md). At
// an iteration's edge the state of the root's shards is copied into a buffer that is kept; a task
// of the writer stores the copy, several parts at once, and then, where the root completes
// checkpoints, the manifest. One checkpoint is written at a time: the next one waits for it.
//
// Used from the root's task. Destroying it while one is being written aborts the slice, as a
// TransferPool does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "common/base/status.h"
#include "trainer_function/checkpoint/checkpoint_io.h"
#include "trainer_function/transport/role_context.h"
#include "trainer_function/transport/transfer_pool.h"

namespace lambdadnn {

class CheckpointWriter {
 public:
  // `context` outlives the writer. `shards` are the root's, and `state` has its elements and
  // vectors.
  CheckpointWriter(const RoleContext& context, Range shards, const ParameterState& state);

  // Waits until the checkpoint before is written, copies the state, of which nothing is read
  // afterwards, and begins to write it as that of `iteration`. Copying allocates nothing.
  Status Begin(int64_t iteration, const ParameterState& state);
  // Of the checkpoint that has begun, by the root of shard 0: CompleteCheckpoint once this root's
  // parts are stored.
  void Complete(CheckpointManifest manifest);

  // Something of a checkpoint is still to be written.
  bool busy() const { return to_do_.load() > 0; }
  // The first error so far of what was written, without waiting.
  Status Check();
  // Waits for what is being written; the first error so far.
  Status Wait();
  // The newest checkpoint that Complete has completed; -1 = none.
  int64_t completed() const { return completed_.load(); }
  // From the copy to the last reply, of the checkpoint that took longest; 0 = none is written yet.
  double longest_seconds() const { return longest_seconds_.load(); }

 private:
  void Submit(std::function<Status()> work);

  const RoleContext& context_;
  const Range shards_;
  ParameterState snapshot_;
  int64_t iteration_ = -1;  // of the snapshot
  Instant begun_{};
  std::atomic<int> to_do_{0};
  std::atomic<int64_t> completed_{-1};
  std::atomic<double> longest_seconds_{0};
  // One job after the other. Last, since its destructor waits for a job that uses all of the above.
  TransferPool writes_;
};

}  // namespace lambdadnn
