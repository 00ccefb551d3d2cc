// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/collective/tree_node.h"

#include <algorithm>

#include "common/plan/arrivals.h"
#include "trainer_function/collective/merge_kernel.h"

namespace lambdadnn {

void MergedShard::SumTo(size_t begin, std::span<float> to) const {
  std::vector<std::span<const float>> parts;
  if (begun) parts.push_back(gradient.subspan(begin, to.size()));
  for (const ReceivedObject& child : last) {
    parts.push_back(child.values<float>().subspan(begin, to.size()));
  }
  MergeChildren(to, parts, false);
}

void MergedShard::Complete() {
  std::vector<std::span<const float>> parts;
  for (const ReceivedObject& child : last) parts.push_back(child.values<float>());
  if (!parts.empty()) MergeChildren(gradient, parts, begun);
  last.clear();
  begun = true;
}

TreeNode::TreeNode(Runtime& runtime, Interrupt& interrupt, Transport& transport,
                   StopAgreement& agreement, PhaseMeter& phases, const AggregationPlan& aggregation,
                   const ParameterBlocks& blocks, const ServerPosition& position)
    : transport_(transport),
      agreement_(agreement),
      phases_(phases),
      aggregation_(aggregation),
      blocks_(blocks),
      position_(position),
      shards_(GroupShards(aggregation, position.group)),
      children_(Children(aggregation, position.level, position.index)),
      held_at_most_(ArrivalsHeld(
          ShardRange(blocks, aggregation.shards, static_cast<int>(shards_.begin)).size() *
          static_cast<int64_t>(sizeof(float)))),
      pulls_(runtime, interrupt, "pull",
             static_cast<int>(std::min({int64_t{transport.WaitingPulls()}, held_at_most_,
                                        shards_.size() * children_.size()}))) {
  sums_.resize(static_cast<size_t>(elements().size()));
}

Range TreeNode::elements() const {
  const int first = static_cast<int>(shards_.begin);
  const int last = static_cast<int>(shards_.end) - 1;
  return {ShardRange(blocks_, aggregation_.shards, first).begin,
          ShardRange(blocks_, aggregation_.shards, last).end};
}

void TreeNode::PullNext(int64_t iteration) {
  if (begun_ == shards_.size() * children_.size()) return;
  const int shard = static_cast<int>(shards_.begin + begun_ / children_.size());
  const int child = static_cast<int>(children_.begin + begun_ % children_.size());
  ++begun_;
  const ExchangeObjectName name = {ObjectKind::kGradient, iteration, position_.level - 1, shard,
                                   child};
  const Range range = ShardRange(blocks_, aggregation_.shards, shard);
  auto slot = std::make_shared<Pulled>();
  ahead_.push_back(slot);
  pulls_.Submit([=, this]() -> Status {
    auto result = transport_.Pull(name, range);
    const Status status = result.status();
    slot->result = std::move(result);
    slot->done.store(true);
    return status;
  });
}

Result<ReceivedObject> TreeNode::AwaitNext(int64_t iteration, int64_t held) {
  while (std::ssize(ahead_) + held < held_at_most_ && begun_ < shards_.size() * children_.size()) {
    PullNext(iteration);
  }
  const std::shared_ptr<Pulled> slot = ahead_.front();
  ahead_.pop_front();
  // What has come already costs no change of phase.
  std::optional<PhaseScope> waits;
  if (!slot->done.load()) waits.emplace(phases_, any_arrived_ ? Phase::kPull : Phase::kWait);
  LDNN_RETURN_IF_ERROR(pulls_.WaitFor([&] { return slot->done.load(); }));
  any_arrived_ = true;
  return std::move(*slot->result);
}

bool TreeNode::NextHasArrived() const { return !ahead_.empty() && ahead_.front()->done.load(); }

Result<MergedShard> TreeNode::MergeShard(int64_t iteration, int shard) {
  const Range range = ShardRange(blocks_, aggregation_.shards, shard);
  MergedShard merged;
  merged.shard = shard;
  merged.elements = range;
  merged.gradient = std::span(sums_).subspan(static_cast<size_t>(range.begin - elements().begin),
                                             static_cast<size_t>(range.size()));
  merged.begun = false;
  for (int64_t child = children_.begin; child < children_.end; ++child) {
    // One pass over the sum for all that have arrived: it is the memory that takes the time. The
    // first child waits for the second, since alone it would only be copied.
    const bool alone = !merged.begun && merged.last.size() < 2;
    if (!merged.last.empty() && !alone && !NextHasArrived()) merged.Complete();
    LDNN_ASSIGN_OR_RETURN(ReceivedObject received, AwaitNext(iteration, std::ssize(merged.last)));
    agreement_.Observe(received.header);
    merged.samples += received.header.samples;
    merged.loss_sum += received.header.loss_sum;
    merged.last.push_back(std::move(received));
  }
  return merged;
}

Status TreeNode::Merge(int64_t iteration, const std::function<Status(MergedShard)>& merged) {
  begun_ = 0;
  any_arrived_ = false;
  ahead_.clear();
  for (int64_t shard = shards_.begin; shard < shards_.end; ++shard) {
    LDNN_ASSIGN_OR_RETURN(MergedShard sum, MergeShard(iteration, static_cast<int>(shard)));
    LDNN_RETURN_IF_ERROR(merged(std::move(sum)));
  }
  return pulls_.WaitIdle();
}

}  // namespace lambdadnn
