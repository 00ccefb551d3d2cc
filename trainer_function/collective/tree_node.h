// SPDX-License-Identifier: Apache-2.0
// A server's side of the tree reduce over shards: one node of the tree, for the shards of its
// spread group. Pulls the gradients of its children, a few ahead (common/plan/arrivals.h), and sums
// them in the children's order; shards are independent of each other and handed over one by one as
// they are complete.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/runtime.h"
#include "common/plan/geometry.h"
#include "trainer_function/collective/stop_agreement.h"
#include "trainer_function/transport/phase_meter.h"
#include "trainer_function/transport/transfer_pool.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// The sum over everything below a node, of one shard in one iteration. Whoever goes through the
// shard anyway adds the children that came last: a sum that is written and read again costs more
// time than adding.
struct MergedShard {
  int shard = 0;
  Range elements;
  std::span<float> gradient;  // the node's buffer; valid until the same shard's next merge
  int64_t samples = 0;
  double loss_sum = 0;
  std::vector<ReceivedObject> last = {};  // children that are not added yet
  bool begun = true;                      // others have been, into `gradient`

  // Some elements of the whole sum, from `begin` on in the shard.
  void SumTo(size_t begin, std::span<float> to) const;
  // The whole sum into `gradient`.
  void Complete();
};

class TreeNode {
 public:
  // All references must outlive the node. `phases` is told when it waits and pulls.
  TreeNode(Runtime& runtime, Interrupt& interrupt, Transport& transport, StopAgreement& agreement,
           PhaseMeter& phases, const AggregationPlan& aggregation, const ParameterBlocks& blocks,
           const ServerPosition& position);

  // Merges all shards of the group for `iteration`, calling `merged` for each in order of shards
  // while later ones still arrive. An error of `merged` ends the merge with it.
  Status Merge(int64_t iteration, const std::function<Status(MergedShard)>& merged);

  Range shards() const { return shards_; }
  // The group's shards as one range of the flat vector.
  Range elements() const;

 private:
  struct Pulled {
    std::optional<Result<ReceivedObject>> result;
    std::atomic<bool> done{false};  // result may be read
  };
  void PullNext(int64_t iteration);
  // `held`: how many came before and are not summed yet.
  Result<ReceivedObject> AwaitNext(int64_t iteration, int64_t held);
  bool NextHasArrived() const;
  Result<MergedShard> MergeShard(int64_t iteration, int shard);

  Transport& transport_;
  StopAgreement& agreement_;
  PhaseMeter& phases_;
  const AggregationPlan aggregation_;
  const ParameterBlocks blocks_;
  const ServerPosition position_;
  const Range shards_;
  const Range children_;
  const int64_t held_at_most_;
  // Of all shards of the group; memory that no sum needs is never touched.
  std::vector<float, NoValueAllocator<float>> sums_;
  // Pulls in flight or arrived, in (shard, child) order, and how many of the iteration began.
  std::deque<std::shared_ptr<Pulled>> ahead_;
  int64_t begun_ = 0;
  bool any_arrived_ = false;  // of the iteration
  TransferPool pulls_;
};

}  // namespace lambdadnn
