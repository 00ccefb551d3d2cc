// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/collective/shard_exchange.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "common/plan/iteration_time.h"
#include "common/plan/sync_policy.h"

namespace lambdadnn {

struct ShardExchange::Arriving {
  explicit Arriving(int count_of_shards) : shards(static_cast<size_t>(count_of_shards)) {}
  WeightShards shards;
  std::atomic<int> count{0};
};

static_assert(kTransferThreads == kRequestsInFlight, "the planner predicts with as many");

ShardExchange::ShardExchange(Runtime& runtime, Interrupt& interrupt, Transport& transport,
                             StopAgreement& agreement, PhaseMeter& phases,
                             const AggregationPlan& aggregation, const ParameterBlocks& blocks,
                             int rank)
    : transport_(transport),
      agreement_(agreement),
      phases_(phases),
      aggregation_(aggregation),
      blocks_(blocks),
      rank_(rank),
      pushes_(runtime, interrupt, "push", std::min(kTransferThreads, aggregation.shards)),
      pulls_(runtime, interrupt, "pull", std::min(transport.WaitingPulls(), aggregation.shards)),
      garbage_(runtime, interrupt, transport) {}

ExchangeObjectName ShardExchange::GradientName(int64_t iteration, int shard) const {
  return {ObjectKind::kGradient, iteration, 0, shard, rank_};
}

void ShardExchange::BeginPull(int64_t version, int shard,
                              const std::shared_ptr<Arriving>& arriving) {
  pulls_.Submit([=, this]() -> Status {
    ReceivedObject& received = arriving->shards[static_cast<size_t>(shard)];
    LDNN_RETURN_IF_ERROR(PullShard(version, shard, &received));
    ++arriving->count;
    return OkStatus();
  });
}

Status ShardExchange::PullShard(int64_t version, int shard, ReceivedObject* received) {
  const Range range = ShardRange(blocks_, aggregation_.shards, shard);
  const ExchangeObjectName name = {ObjectKind::kWeights, version, aggregation_.server_layers(),
                                   shard, 0};
  LDNN_ASSIGN_OR_RETURN(*received, transport_.Pull(name, range));
  agreement_.Observe(received->header);
  return OkStatus();
}

Result<WeightShards> ShardExchange::Exchange(int64_t iteration, const SharedFloats& gradient,
                                             int64_t samples, double loss_sum) {
  const PhaseScope push(phases_, Phase::kPush);
  const auto weights = std::make_shared<Arriving>(aggregation_.shards);
  for (int shard = 0; shard < aggregation_.shards; ++shard) {
    const Range range = ShardRange(blocks_, aggregation_.shards, shard);
    pushes_.Submit([=, this]() -> Status {
      TransferMetadata metadata = {range, samples, loss_sum, 0, false};
      agreement_.Mark(&metadata);
      const SharedView part =
          ViewOf(gradient, static_cast<size_t>(range.begin), static_cast<size_t>(range.size()));
      return transport_.Push(GradientName(iteration, shard), metadata, part);
    });
    BeginPull(SyncPolicy::VersionMade(iteration), shard, weights);
  }
  LDNN_RETURN_IF_ERROR(pushes_.WaitIdle());
  phases_.Enter(Phase::kWait);
  LDNN_RETURN_IF_ERROR(pulls_.WaitFor([&] { return weights->count > 0; }));
  phases_.Enter(Phase::kPull);
  LDNN_RETURN_IF_ERROR(pulls_.WaitIdle());
  // New weights prove that this iteration's gradients were merged: no role reads them again.
  std::vector<ExchangeObjectName> names;
  for (int shard = 0; shard < aggregation_.shards; ++shard)
    names.push_back(GradientName(iteration, shard));
  LDNN_RETURN_IF_ERROR(garbage_.Add(names, static_cast<int64_t>(gradient->size() * sizeof(float))));
  return std::move(weights->shards);
}

Result<WeightShards> ShardExchange::Join(int64_t version) {
  const auto weights = std::make_shared<Arriving>(aggregation_.shards);
  for (int shard = 0; shard < aggregation_.shards; ++shard) BeginPull(version, shard, weights);
  LDNN_RETURN_IF_ERROR(pulls_.WaitIdle());
  return std::move(weights->shards);
}

Status ShardExchange::Finish() {
  const PhaseScope push(phases_, Phase::kPush);
  LDNN_RETURN_IF_ERROR(pulls_.WaitIdle());
  LDNN_RETURN_IF_ERROR(pushes_.WaitIdle());
  return garbage_.Finish();
}

}  // namespace lambdadnn
