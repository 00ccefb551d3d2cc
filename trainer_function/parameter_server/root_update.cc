// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/parameter_server/root_update.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/plan/sync_policy.h"
#include "common/protocol/class_weights.h"
#include "trainer_function/parameter_server/gradient_math.h"
#include "trainer_function/parameter_server/learning_rate.h"

namespace lambdadnn {
namespace {

// 32 KiB each of gradient, weights, state and copy.
constexpr size_t kTileElements = 8192;

Status NotFinite(int64_t iteration, const std::string& what, const std::string& is_not) {
  return InvalidArgumentError("the " + what + " of iteration " + std::to_string(iteration) + " " +
                              is_not +
                              "; lower training.optimizer.learningRate, clip the gradient, or "
                              "look for bad values in the data set");
}

}  // namespace

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
      optimizer_start_(optimizer_start),
      sum_(kTileElements) {}

ExchangeObjectName RootUpdate::NormsName(int64_t iteration, int shard) const {
  const int root = context_.request.plan.aggregation.server_layers();
  return {ObjectKind::kNorms, iteration, root, shard, 0};
}

ExchangeObjectName RootUpdate::WeightsName(int64_t version, int shard) const {
  const int root = context_.request.plan.aggregation.server_layers();
  return {ObjectKind::kWeights, version, root, shard, 0};
}

size_t RootUpdate::GradientElements(const MergedShard& merged) const {
  const int64_t end =
      std::clamp(context_.request.plan.buffers_begin(), merged.elements.begin, merged.elements.end);
  return static_cast<size_t>(end - merged.elements.begin);
}

RootUpdate::Tile RootUpdate::TileOf(const MergedShard& merged, size_t begin,
                                    std::span<float> sum) const {
  const size_t gradient = std::clamp(GradientElements(merged), begin, begin + sum.size()) - begin;
  return {begin, sum.first(gradient), sum.subspan(gradient)};
}

Status RootUpdate::Prepare(int64_t iteration, const Tile& tile, double divisor) const {
  if (!AllFinite(tile.gradient)) {
    return NotFinite(iteration, "gradient", "is not a finite number");
  }
  if (!AllFinite(tile.buffers)) {
    return NotFinite(iteration, "buffers (batch norm's statistics)", "are not finite numbers");
  }
  DivideBy(tile.gradient, divisor);
  if (optimizer_.clip_value) ClipByValue(tile.gradient, *optimizer_.clip_value);
  return OkStatus();
}

Status RootUpdate::OnMerged(int64_t iteration, MergedShard merged) {
  if (!std::isfinite(merged.loss_sum)) {
    return NotFinite(iteration, "loss", "is not a finite number");
  }
  const double divisor = DivisorOf(context_.request.training, merged.samples);
  const auto prepare = [&](const Tile& tile) { return Prepare(iteration, tile, divisor); };
  if (!optimizer_.clip_global_norm) return Publish(iteration, merged, prepare);
  merged.Complete();
  for (size_t begin = 0; begin < merged.gradient.size(); begin += kTileElements) {
    const size_t size = std::min(kTileElements, merged.gradient.size() - begin);
    LDNN_RETURN_IF_ERROR(prepare(TileOf(merged, begin, merged.gradient.subspan(begin, size))));
  }
  held_.push_back(std::move(merged));
  return OkStatus();
}

Status RootUpdate::FinishIteration(int64_t iteration) {
  if (!optimizer_.clip_global_norm) return OkStatus();
  LDNN_ASSIGN_OR_RETURN(const std::vector<double> squares, ExchangeNorms(iteration));
  const float factor = NormClipFactor(squares, *optimizer_.clip_global_norm);
  for (const MergedShard& merged : held_) {
    LDNN_RETURN_IF_ERROR(Publish(iteration, merged, [factor](const Tile& tile) {
      Scale(tile.gradient, factor);
      return OkStatus();
    }));
  }
  held_.clear();
  return OkStatus();
}

Result<std::vector<double>> RootUpdate::ExchangeNorms(int64_t iteration) {
  const ExecutionPlan& plan = context_.request.plan;
  std::vector<std::vector<double>> own;
  for (const MergedShard& merged : held_) {
    const auto gradient = merged.gradient.first(GradientElements(merged));
    own.push_back(BlockSquares(gradient, plan.block_elements));
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

void RootUpdate::Update(const OptimizerStep& step, const Tile& tile, std::span<float> weights,
                        size_t first) {
  std::vector<std::span<float>> vectors;
  for (auto& vector : state_.vectors) {
    vectors.push_back(std::span(vector).subspan(first + tile.begin, tile.gradient.size()));
  }
  ApplyOptimizer(optimizer_, step, weights.first(tile.gradient.size()), tile.gradient, vectors);
  std::ranges::copy(tile.buffers, weights.begin() + std::ssize(tile.gradient));
}

Status RootUpdate::Publish(int64_t iteration, const MergedShard& merged,
                           const std::function<Status(const Tile&)>& prepare) {
  const auto first = static_cast<size_t>(merged.elements.begin - state_.elements.begin);
  const OptimizerStep step = {LearningRate(optimizer_, iteration, context_.request.plan.iterations),
                              iteration - optimizer_start_};
  const auto published = published_[merged.shard].Take(merged.gradient.size());
  for (size_t begin = 0; begin < published->size(); begin += kTileElements) {
    const auto sum = std::span(sum_).first(std::min(kTileElements, published->size() - begin));
    merged.SumTo(begin, sum);
    const Tile tile = TileOf(merged, begin, sum);
    LDNN_RETURN_IF_ERROR(prepare(tile));
    const auto weights = std::span(state_.weights).subspan(first + begin, sum.size());
    Update(step, tile, weights, first);
    std::ranges::copy(weights, published->begin() + static_cast<ptrdiff_t>(begin));
  }
  context_.pace();
  const ExchangeObjectName name = WeightsName(SyncPolicy::VersionMade(iteration), merged.shard);
  TransferMetadata metadata = {merged.elements, merged.samples, merged.loss_sum, 0, false};
  // Does not capture `this`: after a failure the update is destroyed while pushes still run.
  pushes_.Submit([&agreement = agreement_, &transport = transport_, name, metadata,
                  weights = ViewOf(published, 0, published->size())]() mutable {
    agreement.Mark(&metadata);
    return transport.Push(name, metadata, weights);
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
