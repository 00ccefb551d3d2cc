// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/collective/shard_exchange.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "common/plan/iteration_time.h"
#include "common/plan/sync_policy.h"

namespace lambdadnn {

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

Status ShardExchange::PullShard(int64_t version, int shard, std::span<float> weights) {
  const Range range = ShardRange(blocks_, aggregation_.shards, shard);
  const ExchangeObjectName name = {ObjectKind::kWeights, version, aggregation_.server_layers(),
                                   shard, 0};
  LDNN_ASSIGN_OR_RETURN(const ReceivedObject received, transport_.Pull(name, range));
  agreement_.Observe(received.header);
  const auto values = received.values<float>();
  std::copy(values.begin(), values.end(), weights.begin() + range.begin);
  return OkStatus();
}

Status ShardExchange::Exchange(int64_t iteration, const SharedFloats& gradient, int64_t samples,
                               double loss_sum, std::span<float> weights) {
  const PhaseScope push(phases_, Phase::kPush);
  std::atomic<int> arrived{0};
  for (int shard = 0; shard < aggregation_.shards; ++shard) {
    const Range range = ShardRange(blocks_, aggregation_.shards, shard);
    pushes_.Submit([=, this]() -> Status {
      TransferMetadata metadata = {range, samples, loss_sum, 0, false};
      agreement_.Mark(&metadata);
      const SharedView part =
          ViewOf(gradient, static_cast<size_t>(range.begin), static_cast<size_t>(range.size()));
      return transport_.Push(GradientName(iteration, shard), metadata, part);
    });
    pulls_.Submit([=, this, &arrived]() -> Status {
      LDNN_RETURN_IF_ERROR(PullShard(SyncPolicy::VersionMade(iteration), shard, weights));
      ++arrived;
      return OkStatus();
    });
  }
  LDNN_RETURN_IF_ERROR(pushes_.WaitIdle());
  phases_.Enter(Phase::kWait);
  LDNN_RETURN_IF_ERROR(pulls_.WaitFor([&] { return arrived > 0; }));
  phases_.Enter(Phase::kPull);
  LDNN_RETURN_IF_ERROR(pulls_.WaitIdle());
  // New weights prove that this iteration's gradients were merged: no role reads them again.
  std::vector<ExchangeObjectName> names;
  for (int shard = 0; shard < aggregation_.shards; ++shard)
    names.push_back(GradientName(iteration, shard));
  return garbage_.Add(names, static_cast<int64_t>(gradient->size() * sizeof(float)));
}

Status ShardExchange::Join(int64_t version, std::span<float> weights) {
  for (int shard = 0; shard < aggregation_.shards; ++shard) {
    pulls_.Submit([=, this] { return PullShard(version, shard, weights); });
  }
  return pulls_.WaitIdle();
}

Status ShardExchange::Finish() {
  const PhaseScope push(phases_, Phase::kPush);
  LDNN_RETURN_IF_ERROR(pulls_.WaitIdle());
  LDNN_RETURN_IF_ERROR(pushes_.WaitIdle());
  return garbage_.Finish();
}

}  // namespace lambdadnn
