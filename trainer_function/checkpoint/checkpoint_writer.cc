// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <utility>

namespace lambdadnn {

CheckpointWriter::CheckpointWriter(const RoleContext& context, Range shards,
                                   const ParameterState& state)
    : context_(context),
      shards_(shards),
      snapshot_(ParameterState::Zero(state.elements, static_cast<int>(state.vectors.size()))),
      writes_(context.runtime, context.interrupt, "checkpoint", 1) {}

Status CheckpointWriter::Begin(int64_t iteration, const ParameterState& state) {
  LDNN_RETURN_IF_ERROR(Wait());
  LDNN_CHECK(
      state.elements == snapshot_.elements && state.vectors.size() == snapshot_.vectors.size(),
      "the state of a checkpoint is not its writer's");
  std::ranges::copy(state.weights, snapshot_.weights.begin());
  for (size_t i = 0; i < state.vectors.size(); ++i) {
    std::ranges::copy(state.vectors[i], snapshot_.vectors[i].begin());
  }
  iteration_ = iteration;
  begun_ = context_.runtime.clock.Now();
  Submit(
      [this, iteration] { return WriteCheckpointParts(context_, iteration, shards_, snapshot_); });
  return OkStatus();
}

void CheckpointWriter::Complete(CheckpointManifest manifest) {
  Submit([this, iteration = iteration_, manifest = std::move(manifest)]() -> Status {
    LDNN_RETURN_IF_ERROR(CompleteCheckpoint(context_, iteration, manifest));
    completed_.store(iteration);
    return OkStatus();
  });
}

Status CheckpointWriter::Check() {
  return writes_.WaitFor([] { return true; });
}

Status CheckpointWriter::Wait() { return writes_.WaitIdle(); }

void CheckpointWriter::Submit(std::function<Status()> work) {
  ++to_do_;
  writes_.Submit([this, work = std::move(work)] {
    Status status = work();
    const double took = ToSeconds(context_.runtime.clock.Now() - begun_);
    longest_seconds_.store(std::max(longest_seconds_.load(), took));
    --to_do_;
    return status;
  });
}

}  // namespace lambdadnn
