// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/parameter_server/server_role.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "common/plan/sync_policy.h"
#include "common/protocol/class_weights.h"
#include "trainer_function/checkpoint/checkpoint_writer.h"
#include "trainer_function/checkpoint/evaluation_parts.h"
#include "trainer_function/collective/tree_node.h"
#include "trainer_function/parameter_server/optimizer.h"
#include "trainer_function/parameter_server/root_update.h"
#include "trainer_function/transport/garbage_collector.h"

namespace lambdadnn {
namespace {

// When a slice ends, one checkpoint may be half written; the last one follows it.
constexpr double kCheckpointsAtEnd = 2;

class ServerRole {
 public:
  explicit ServerRole(SliceSession& session)
      : session_(session),
        context_(session.context()),
        plan_(session.plan()),
        position_(session.role().position),
        is_root_(position_.level == plan_.aggregation.server_layers()),
        leads_(is_root_ && position_.group == 0),
        record_(session.record()) {}

  Status Run() {
    const Status status = Train();
    if (writer_ == nullptr) return status;
    {
      // Also after a failure: this is where the job goes on. What is half written is of iterations
      // that went well.
      const PhaseScope scope(context_.phases, Phase::kCheckpoint);
      (void)writer_->Wait();
    }
    const int64_t completed = writer_->completed();
    if (completed >= 0) record_.checkpoint = CheckpointAt(context_.request, completed);
    if (skipped_ > 0) record_.metrics[kCheckpointsSkippedMetric] = static_cast<double>(skipped_);
    return status;
  }

 private:
  Status Train();
  Status Load();
  Status RunIteration(int64_t iteration);
  Status OnMerged(int64_t iteration, MergedShard merged);
  Status Decide(int64_t iteration, const MergedShard& merged);
  // What the version of these weights is worth, told by all workers.
  Status CountEvaluation(int64_t version);
  Status DiscardBefore(int64_t iteration, const MergedShard& merged);
  Status Checkpoint(int64_t iteration, bool last);
  // Of the weights of `version`, unless the slice ends with them, which needs one anyway.
  bool IsCheckpointDue(int64_t version) const {
    return plan_.checkpoint_every > 0 && version % plan_.checkpoint_every == 0;
  }
  // They may become the best, which is kept.
  bool MayBecomeBest(int64_t version) const {
    return context_.request.training.keep_best.has_value() &&
           context_.request.evaluations().Includes(version);
  }
  void SkipCheckpointIfBusy(int64_t version);
  Status Completed(int64_t done, double seconds);
  void Report(int64_t done, double seconds);
  int64_t EpochIterations() const { return std::max<int64_t>(1, plan_.iterations_per_epoch); }

  SliceSession& session_;
  const RoleContext& context_;
  const ExecutionPlan& plan_;
  const ServerPosition position_;
  const bool is_root_;
  const bool leads_;  // the root of shard 0
  SliceRecord& record_;
  ParameterState state_;    // roots only
  bool continues_ = false;  // the previous slice used the same keys
  double epoch_loss_sum_ = 0;
  int64_t epoch_samples_ = 0;
  EvaluationProgress evaluation_;
  std::optional<CheckpointManifest::Best> best_;
  double iteration_loss_ = 0;
  int64_t iteration_samples_ = 0;
  std::unique_ptr<TreeNode> node_;
  std::unique_ptr<TransferPool> pushes_;
  std::unique_ptr<GarbageCollector> garbage_;
  std::unique_ptr<RootUpdate> update_;
  std::unique_ptr<CheckpointWriter> writer_;  // roots only
  int64_t skipped_ = 0;                       // checkpoints, by who leads
};

Status ServerRole::Load() {
  LDNN_RETURN_IF_ERROR(session_.Begin());
  const SliceStart& start = session_.start();
  const SliceRequest& request = context_.request;
  continues_ = request.start.has_value() && !start.warm &&
               start.checkpoint == CheckpointAt(request, request.first_iteration);
  node_ = std::make_unique<TreeNode>(context_.runtime, context_.interrupt, session_.transport(),
                                     session_.agreement(), context_.phases, plan_.aggregation,
                                     plan_.blocks(), position_);
  pushes_ = std::make_unique<TransferPool>(context_.runtime, context_.interrupt, "push");
  garbage_ = std::make_unique<GarbageCollector>(context_.runtime, context_.interrupt,
                                                session_.transport());
  if (!is_root_) return OkStatus();
  epoch_loss_sum_ = start.manifest.epoch_loss_sum;
  epoch_samples_ = start.manifest.epoch_samples;
  evaluation_ = start.manifest.evaluation;
  best_ = start.manifest.best;
  const int vectors = OptimizerStateVectors(request.training.optimizer);
  state_ = ParameterState::Zero(node_->elements(), start.warm ? 0 : vectors);
  double read_seconds = 0;
  {
    const PhaseTimer reading(context_.runtime.clock, &read_seconds);
    LDNN_RETURN_IF_ERROR(ReadCheckpoint(context_.store, start.checkpoint, start.manifest, &state_));
  }
  // The best guess of what writing one takes, until the first is written.
  session_.budget().EndWorkTook(read_seconds);
  if (leads_) record_.checkpoint = start.checkpoint;
  if (start.warm)
    state_.vectors.assign(static_cast<size_t>(vectors), std::vector<float>(state_.weights.size()));
  const int64_t optimizer_start = start.warm ? request.first_iteration : 0;
  update_ = std::make_unique<RootUpdate>(context_, session_.transport(), session_.agreement(),
                                         *pushes_, state_, node_->shards(), optimizer_start);
  writer_ = std::make_unique<CheckpointWriter>(context_, node_->shards(), state_);
  return OkStatus();
}

// What a gradient of `iteration` proves not to be read again.
Status ServerRole::DiscardBefore(int64_t iteration, const MergedShard& merged) {
  // Of which there are exchanged objects.
  const int64_t oldest = continues_ ? 0 : context_.request.first_iteration;
  std::vector<ExchangeObjectName> names;
  if (is_root_) {
    names = update_->Garbage(iteration, oldest, merged.shard);
  } else if (const int64_t read = SyncPolicy::ReadByAll(iteration); read >= oldest) {
    names = {{ObjectKind::kGradient, read, position_.level, merged.shard, position_.index}};
  }
  return garbage_->Add(names, static_cast<int64_t>(merged.gradient.size_bytes()));
}

Status ServerRole::Decide(int64_t iteration, const MergedShard& merged) {
  iteration_loss_ = merged.loss_sum;
  iteration_samples_ = merged.samples;
  epoch_loss_sum_ += merged.loss_sum;
  epoch_samples_ += merged.samples;
  if ((iteration + 1) % EpochIterations() == 0) {
    const auto& goal = context_.request.training.stop_at_loss;
    const double mean = epoch_loss_sum_ /
                        DivisorOf(context_.request.training, std::max<int64_t>(1, epoch_samples_));
    if (goal && mean <= *goal) session_.agreement().Finish(SyncPolicy::VersionMade(iteration));
    epoch_loss_sum_ = 0;
    epoch_samples_ = 0;
  }
  if (context_.request.decides_by_evaluations() &&
      context_.request.evaluations().Includes(SyncPolicy::VersionRead(iteration))) {
    // All workers have told before they pushed the gradients that are merged here.
    LDNN_RETURN_IF_ERROR(CountEvaluation(SyncPolicy::VersionRead(iteration)));
    const auto& rule = context_.request.training.early_stopping;
    if (rule && evaluation_.MustStop(*rule)) {
      session_.agreement().Finish(SyncPolicy::VersionMade(iteration));
    }
  }
  session_.agreement().Answer(SyncPolicy::VersionMade(iteration));
  SkipCheckpointIfBusy(SyncPolicy::VersionMade(iteration));
  return OkStatus();
}

// Told with the weights of `version`, of those that follow: they are not published yet. A
// checkpoint that is needed for more than falling back is never left out, but waited for.
void ServerRole::SkipCheckpointIfBusy(int64_t version) {
  const int64_t next = SyncPolicy::SkipToldWith(version);
  if (IsCheckpointDue(next) && !MayBecomeBest(next) && writer_->busy()) {
    session_.agreement().SkipCheckpoint(version);
  }
}

Status ServerRole::CountEvaluation(int64_t version) {
  const PhaseScope pull(context_.phases, Phase::kPull);
  LDNN_ASSIGN_OR_RETURN(const EvaluationPart sum, TakeEvaluation(context_, version));
  const TrainingConfig& training = context_.request.training;
  const bool counts =
      evaluation_.Count(version, sum.Metrics(), training.early_stopping, training.keep_best);
  if (!counts || !evaluation_.best || evaluation_.best_version != version) return OkStatus();
  // The checkpoint of these weights: this slice began with it, or has written it on the way.
  const CheckpointReference checkpoint = version == context_.request.first_iteration
                                             ? session_.start().checkpoint
                                             : CheckpointAt(context_.request, version);
  best_ = {checkpoint.plan_revision, checkpoint.incarnation};
  return OkStatus();
}

Status ServerRole::OnMerged(int64_t iteration, MergedShard merged) {
  context_.pace();
  LDNN_RETURN_IF_ERROR(DiscardBefore(iteration, merged));
  if (!is_root_) {
    merged.Complete();
    TransferMetadata metadata = {merged.elements, merged.samples, merged.loss_sum, 0, false};
    const ExchangeObjectName name = {ObjectKind::kGradient, iteration, position_.level,
                                     merged.shard, position_.index};
    pushes_->Submit([this, name, metadata, gradient = merged.gradient]() mutable {
      session_.agreement().Mark(&metadata);
      return session_.transport().Push(name, metadata, AsBytes(std::span<const float>(gradient)));
    });
    return OkStatus();
  }
  const PhaseScope scope(context_.phases, Phase::kUpdate);
  const Status updated = [&]() -> Status {
    if (leads_ && merged.shard == 0) LDNN_RETURN_IF_ERROR(Decide(iteration, merged));
    return update_->OnMerged(iteration, std::move(merged));
  }();
  if (updated.code() == StatusCode::kInvalidArgument) record_.permanent = true;
  return updated;
}

Status ServerRole::RunIteration(int64_t iteration) {
  {
    // Buffers of the last iteration are written again now: even the replies to its pushes must be
    // in.
    const PhaseScope push(context_.phases, Phase::kPush);
    LDNN_RETURN_IF_ERROR(pushes_->WaitIdle());
  }
  session_.StopInTime();
  LDNN_RETURN_IF_ERROR(node_->Merge(
      iteration, [&](MergedShard merged) { return OnMerged(iteration, std::move(merged)); }));
  if (!is_root_) return OkStatus();
  const PhaseScope scope(context_.phases, Phase::kUpdate);
  return update_->FinishIteration(iteration);
}

Status ServerRole::Checkpoint(int64_t iteration, bool last) {
  const PhaseScope scope(context_.phases, Phase::kCheckpoint);
  LDNN_RETURN_IF_ERROR(writer_->Begin(iteration, state_));
  if (leads_) {
    const bool ends = last && session_.agreement().is_final();
    if (ends && context_.request.training.keep_best &&
        context_.request.evaluations().Includes(iteration)) {
      LDNN_RETURN_IF_ERROR(CountEvaluation(iteration));
    }
    CheckpointManifest manifest;
    manifest.evaluation = evaluation_;
    manifest.best = best_;
    const int64_t pending = session_.agreement().pending_stop();
    manifest.stop_at = pending >= iteration ? pending : 0;
    manifest.epoch_loss_sum = epoch_loss_sum_;
    manifest.epoch_samples = epoch_samples_;
    writer_->Complete(std::move(manifest));
  }
  if (!last) return OkStatus();
  LDNN_RETURN_IF_ERROR(writer_->Wait());
  if (leads_) return OkStatus();
  return AwaitCheckpoint(context_, CheckpointAt(context_.request, iteration)).status();
}

void ServerRole::Report(int64_t done, double seconds) {
  if (!leads_) return;
  ProgressLine line;
  line.iteration = done;
  line.epoch = (done - 1) / EpochIterations();
  const TrainingConfig& training = context_.request.training;
  line.loss =
      iteration_samples_ > 0 ? iteration_loss_ / DivisorOf(training, iteration_samples_) : 0;
  const int64_t samples =
      training.class_weights.empty() ? iteration_samples_ : plan_.global_batch_size;
  if (seconds > 0) line.samples_per_second = static_cast<double>(samples) / seconds;
  context_.emit(line);
}

Status ServerRole::Completed(int64_t done, double seconds) {
  Report(done, seconds);
  if (!is_root_) return OkStatus();
  // What could not be written beside the iterations ends the slice here.
  LDNN_RETURN_IF_ERROR(writer_->Check());
  session_.budget().EndWorkTook(kCheckpointsAtEnd * writer_->longest_seconds());
  if (done >= session_.agreement().end()) return OkStatus();
  if (MayBecomeBest(done)) return Checkpoint(done, false);
  if (!IsCheckpointDue(done)) return OkStatus();
  if (!session_.agreement().skips_checkpoint(done)) return Checkpoint(done, false);
  if (leads_) ++skipped_;
  return OkStatus();
}

Status ServerRole::Train() {
  LDNN_RETURN_IF_ERROR(Load());
  context_.phases.Enter(Phase::kMerge);
  LDNN_RETURN_IF_ERROR(session_.RunIterations(
      [this](int64_t iteration) { return RunIteration(iteration); },
      [this](int64_t done, double seconds) { return Completed(done, seconds); }));
  {
    const PhaseScope push(context_.phases, Phase::kPush);
    LDNN_RETURN_IF_ERROR(pushes_->WaitIdle());
    LDNN_RETURN_IF_ERROR(garbage_->Finish());
  }
  if (is_root_ && record_.next_iteration > context_.request.first_iteration) {
    LDNN_RETURN_IF_ERROR(Checkpoint(record_.next_iteration, true));
  }
  session_.End(state_.weights);
  return OkStatus();
}

Status Validate(const SliceRequest& request, const ServerPosition& position) {
  const AggregationPlan& aggregation = request.plan.aggregation;
  LDNN_RETURN_IF_ERROR(ValidateOptimizer(request.training.optimizer));
  if (position.level < 1 || position.level > aggregation.server_layers() || position.index < 0 ||
      position.index >= aggregation.Width(position.level) || position.group < 0 ||
      position.group >= aggregation.spread) {
    return InvalidArgumentError(
        "role: the plan has no server at level " + std::to_string(position.level) + ", index " +
        std::to_string(position.index) + ", group " + std::to_string(position.group));
  }
  if (request.plan.parameters < 1) {
    return InvalidArgumentError("plan.parameters: a server needs the size of the model");
  }
  return OkStatus();
}

}  // namespace

Status RunServerRole(SliceSession& session) {
  if (const Status valid = Validate(session.request(), session.role().position); !valid.ok()) {
    session.record().permanent = true;
    return valid;
  }
  return ServerRole(session).Run();
}

}  // namespace lambdadnn
