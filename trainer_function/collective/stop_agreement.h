// SPDX-License-Identifier: Apache-2.0
// Agreement on the last iteration of a slice, and on checkpoints that are left out. It travels with
// the exchanged objects, so that every role ends with the same iteration and all roots write the
// same checkpoints, and no clock influences the arithmetic (docs/design/001-data-plane.md).
//
// A role that wants to stop writes kStopRequested into the headers of the objects that it pushes;
// every reader repeats it. The root of shard 0 answers in the header of the weights of some version
// v with the end, SyncPolicy::EndToldWith(v). Workers repeat it in the gradients that they compute
// at v, so every server knows it before the last iteration ends. A checkpoint is left out in the
// same way: the weights of version v tell that version v + 1 gets none. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "trainer_function/transport/transport.h"

namespace lambdadnn {

class StopAgreement {
 public:
  // `last`: the plan's iterations. `pending_stop`: decided before this slice (the checkpoint's
  // manifest), always final; 0 = none.
  StopAgreement(int64_t last, int64_t pending_stop);

  // This role wants to stop (budget, SIGTERM, asked by the operator).
  void Request() { requested_.store(true); }
  bool requested() const { return requested_.load(); }
  // Reads the stop fields of a pulled object.
  void Observe(const ObjectHeader& header);
  // Sets the stop fields of an object to be pushed.
  void Mark(TransferMetadata* metadata) const;

  // Root of shard 0 only, before it publishes the weights of `version`: answers a request.
  void Answer(int64_t version);
  // Root of shard 0 only, likewise: the training's own end was reached by the iteration that made
  // `version`.
  void Finish(int64_t version);

  // Root of shard 0 only, before it publishes the weights of `version`: what follows these gets no
  // checkpoint.
  void SkipCheckpoint(int64_t version);
  // Whether the weights of `version` get no checkpoint. All roots know it once they have merged the
  // gradients that make it.
  bool skips_checkpoint(int64_t version) const { return skipped_checkpoint_.load() == version; }

  // Iterations that are done when the slice ends, as far as known now.
  int64_t end() const;
  // The training is over at end().
  bool is_final() const;
  // Decided end of the training that lies beyond end(): for the manifest. 0 = none.
  int64_t pending_stop() const { return final_stop_.load(); }

 private:
  const int64_t last_;
  std::atomic<bool> requested_{false};
  std::atomic<int64_t> slice_stop_{0};  // 0 = not agreed yet
  std::atomic<int64_t> final_stop_{0};
  std::atomic<int64_t> skipped_checkpoint_{0};  // the newest
};

}  // namespace lambdadnn
