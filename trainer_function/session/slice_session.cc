// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/session/slice_session.h"

#include <utility>

#include "common/base/bytes.h"

namespace lambdadnn {

Result<SliceStart> FindStart(const RoleContext& context) {
  const SliceRequest& request = context.request;
  SliceStart start;
  if (request.start) {
    start.checkpoint = *request.start;
    LDNN_ASSIGN_OR_RETURN(start.manifest, ReadManifest(context.store, start.checkpoint));
    start.warm = start.checkpoint.iteration != request.first_iteration;
  } else {
    start.checkpoint = CheckpointAt(request, request.first_iteration);
    LDNN_ASSIGN_OR_RETURN(start.manifest, AwaitCheckpoint(context, start.checkpoint));
  }
  if (start.manifest.parameters != request.plan.parameters) {
    return FailedPreconditionError(
        "the checkpoint of iteration " + std::to_string(start.checkpoint.iteration) + " has " +
        std::to_string(start.manifest.parameters) + " parameters, the plan says " +
        std::to_string(request.plan.parameters) + "; start from a checkpoint of this model");
  }
  if (start.warm) {
    start.manifest.stop_at = 0;
    start.manifest.epoch_loss_sum = 0;
    start.manifest.epoch_samples = 0;
    start.manifest.evaluation = {};
    start.manifest.best.reset();
  }
  return start;
}

SliceSession::SliceSession(const RoleContext& context, const Role& role, Transport& transport,
                           SliceRecord record)
    : context_(context),
      role_(role),
      transport_(transport),
      record_(std::move(record)),
      budget_(context.runtime.clock, context.started, context.request.budget_seconds) {}

Status SliceSession::Begin() {
  LDNN_ASSIGN_OR_RETURN(start_, FindStart(context_));
  first_iteration_ = request().first_iteration;
  agreement_.emplace(plan().iterations, start_->manifest.stop_at);
  return OkStatus();
}

void SliceSession::JoinAt(int64_t version) {
  first_iteration_ = version;
  agreement_.emplace(plan().iterations, 0);
}

void SliceSession::StopInTime() {
  if (context_.stop_wanted() || budget_.MustStop()) agreement_->Request();
}

Status SliceSession::RunIterations(
    const std::function<Status(int64_t iteration)>& iterate,
    const std::function<Status(int64_t done, double seconds)>& completed) {
  const int64_t first = first_iteration_;
  int64_t done = first;
  record_.next_iteration = done;
  while (done < agreement_->end()) {
    const Instant begin = context_.runtime.clock.Now();
    LDNN_RETURN_IF_ERROR(iterate(done));
    const double seconds = ToSeconds(context_.runtime.clock.Now() - begin);
    // The first iteration waits for functions that start later: its time does not predict the next.
    if (done > first) budget_.IterationTook(seconds);
    ++done;
    record_.next_iteration = done;
    LDNN_RETURN_IF_ERROR(completed(done, seconds));
  }
  return OkStatus();
}

void SliceSession::End(std::span<const float> weights) {
  const PhaseScope scope(context_.phases, Phase::kCheckpoint);
  if (!weights.empty()) record_.state_digest = Hex64(Xxh3(AsBytes(weights)));
  record_.outcome = agreement_->is_final() ? SliceOutcome::kFinished : SliceOutcome::kStopped;
}

}  // namespace lambdadnn
