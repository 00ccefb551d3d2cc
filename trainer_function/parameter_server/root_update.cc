// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/parameter_server/root_update.h"

#include <algorithm>
#include <cmath>

#include "common/plan/sync_policy.h"
#include "common/protocol/class_weights.h"
#include "trainer_function/parameter_server/gradient_math.h"
#include "trainer_function/parameter_server/learning_rate.h"
#include "trainer_function/parameter_server/optimizer.h"

namespace lambdadnn {

RootUpdate::RootUpdate(const RoleContext& context, Transport& transport, StopAgreement& agreement,
                       TransferPool& pushes, ParameterState& state, Range shards,
                       int64_t optimizer_start)
    : context_(context),
      optimizer_(context.request.training.optimizer),
      transport_(transport),
      agreement_(agreement),
      pushes_(pushes),
      state_(state),
      shards_(shards),
      optimizer_start_(optimizer_start) {}

ExchangeObjectName RootUpdate::NormsName(int64_t iteration, int shard) const {
  const int root = context_.request.plan.aggregation.server_layers();
  return {ObjectKind::kNorms, iteration, root, shard, 0};
}

ExchangeObjectName RootUpdate::WeightsName(int64_t version, int shard) const {
  const int root = context_.request.plan.aggregation.server_layers();
  return {ObjectKind::kWeights, version, root, shard, 0};
}

std::span<float> RootUpdate::GradientOf(const MergedShard& merged) const {
  const int64_t end =
      std::clamp(context_.request.plan.buffers_begin(), merged.elements.begin, merged.elements.end);
  return merged.gradient.first(static_cast<size_t>(end - merged.elements.begin));
}

Status RootUpdate::OnMerged(int64_t iteration, const MergedShard& merged) {
  const std::span<float> gradient = GradientOf(merged);
  const bool finite_gradient = AllFinite(gradient);
  const bool finite_loss = std::isfinite(merged.loss_sum);
  if (!finite_loss || !finite_gradient || !AllFinite(merged.gradient.subspan(gradient.size()))) {
    const char* const what = !finite_loss       ? "loss"
                             : !finite_gradient ? "gradient"
                                                : "buffers (batch norm's statistics)";
    return InvalidArgumentError(
        "the " + std::string(what) + " of iteration " + std::to_string(iteration) +
        (finite_loss && finite_gradient ? " are not finite numbers" : " is not a finite number") +
        "; lower training.optimizer.learningRate, clip the gradient, or "
        "look for bad values in the data set");
  }
  DivideBy(gradient, DivisorOf(context_.request.training, merged.samples));
  if (optimizer_.clip_value) ClipByValue(gradient, *optimizer_.clip_value);
  if (optimizer_.clip_global_norm) {
    held_.push_back(merged);
    return OkStatus();
  }
  return Publish(iteration, merged);
}

Status RootUpdate::FinishIteration(int64_t iteration) {
  if (!optimizer_.clip_global_norm) return OkStatus();
  LDNN_ASSIGN_OR_RETURN(const std::vector<double> squares, ExchangeNorms(iteration));
  const float factor = NormClipFactor(squares, *optimizer_.clip_global_norm);
  for (const MergedShard& merged : held_) {
    Scale(GradientOf(merged), factor);
    LDNN_RETURN_IF_ERROR(Publish(iteration, merged));
  }
  held_.clear();
  return OkStatus();
}

Result<std::vector<double>> RootUpdate::ExchangeNorms(int64_t iteration) {
  const ExecutionPlan& plan = context_.request.plan;
  std::vector<std::vector<double>> own;
  for (const MergedShard& merged : held_) {
    own.push_back(BlockSquares(GradientOf(merged), plan.block_elements));
    // One sum a block, also of buffers, which have no part in the norm.
    own.back().resize(static_cast<size_t>(BlockCount(merged.elements.size(), plan.block_elements)));
    TransferMetadata metadata;
    metadata.elements = merged.elements;
    const PhaseScope push(context_.phases, Phase::kPush);
    LDNN_RETURN_IF_ERROR(transport_.Push(NormsName(iteration, merged.shard), metadata,
                                         std::as_bytes(std::span(own.back()))));
  }
  std::vector<double> all;  // in block order, whatever the shards
  for (int shard = 0; shard < plan.aggregation.shards; ++shard) {
    if (shard >= shards_.begin && shard < shards_.end) {
      const auto& squares = own[static_cast<size_t>(shard - shards_.begin)];
      all.insert(all.end(), squares.begin(), squares.end());
      continue;
    }
    const Range range = ShardRange(plan.blocks(), plan.aggregation.shards, shard);
    const PhaseScope pull(context_.phases, Phase::kPull);
    LDNN_ASSIGN_OR_RETURN(const ReceivedObject received,
                          transport_.Pull(NormsName(iteration, shard), range));
    const auto squares = received.values<double>();
    all.insert(all.end(), squares.begin(), squares.end());
  }
  return all;
}

Status RootUpdate::Publish(int64_t iteration, const MergedShard& merged) {
  const auto offset = static_cast<size_t>(merged.elements.begin - state_.elements.begin);
  const std::span<float> weights =
      std::span(state_.weights).subspan(offset, merged.gradient.size());
  const std::span<float> gradient = GradientOf(merged);
  std::vector<std::span<float>> vectors;
  for (auto& vector : state_.vectors)
    vectors.push_back(std::span(vector).subspan(offset, gradient.size()));
  const OptimizerStep step = {LearningRate(optimizer_, iteration, context_.request.plan.iterations),
                              iteration - optimizer_start_};
  ApplyOptimizer(optimizer_, step, weights.first(gradient.size()), gradient, vectors);
  std::copy(merged.gradient.begin() + std::ssize(gradient), merged.gradient.end(),
            weights.begin() + std::ssize(gradient));
  context_.pace();
  const ExchangeObjectName name = WeightsName(SyncPolicy::VersionMade(iteration), merged.shard);
  TransferMetadata metadata = {merged.elements, merged.samples, merged.loss_sum, 0, false};
  // Does not capture `this`: after a failure the update is destroyed while pushes still run.
  pushes_.Submit(
      [&agreement = agreement_, &transport = transport_, name, metadata, weights]() mutable {
        agreement.Mark(&metadata);
        return transport.Push(name, metadata, AsBytes(std::span<const float>(weights)));
      });
  return OkStatus();
}

std::vector<ExchangeObjectName> RootUpdate::Garbage(int64_t iteration, int64_t oldest,
                                                    int shard) const {
  std::vector<ExchangeObjectName> names;
  const int64_t read = SyncPolicy::ReadByAll(iteration);
  if (optimizer_.clip_global_norm && read >= oldest) names.push_back(NormsName(read, shard));
  // The version that iteration `oldest` reads comes from a checkpoint.
  const int64_t version = SyncPolicy::NeverReadAgain(iteration);
  if (version > oldest) names.push_back(WeightsName(version, shard));
  return names;
}

}  // namespace lambdadnn
