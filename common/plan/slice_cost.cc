// SPDX-License-Identifier: Apache-2.0
#include "common/plan/slice_cost.h"

#include <algorithm>

namespace lambdadnn {

Bill SliceRequests(const AggregationPlan& plan, const RunShape& run) {
  const double workers = plan.workers();
  const double shards = plan.shards;
  const double manifest = 1 + shards;  // read, and its parts looked at
  const double roles = workers + plan.servers();
  const double checkpoints = 1 + run.checkpoints + run.slices;
  const double deleted = std::max(0.0, checkpoints - run.kept_checkpoints);

  Bill bill;
  bill.get_requests = run.slices * (roles * manifest + (workers + 1) * shards + workers +
                                    (plan.spread - 1) * manifest) +
                      checkpoints * 2 * shards;
  bill.put_requests = checkpoints * (shards + 2) + deleted + workers + run.models;
  if (run.keeps_best) {
    // Which of those that stay are the best's; at the end, the last manifest's and its weights.
    bill.get_requests += deleted * run.kept_checkpoints * manifest + 2 * manifest + shards;
    bill.put_requests += 1;
  }
  return bill;
}

}  // namespace lambdadnn
