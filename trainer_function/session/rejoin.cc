// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/session/rejoin.h"

#include <algorithm>
#include <map>
#include <set>

namespace lambdadnn {

Result<int64_t> FindVersionToJoin(const RoleContext& context, Transport& transport) {
  LDNN_ASSIGN_OR_RETURN(const std::set<WeightsShard> found, transport.FindWeights());
  std::map<int64_t, int> shards;  // of each version
  for (const WeightsShard& weights : found) ++shards[weights.version];
  int64_t newest = context.request.first_iteration;
  for (const auto& [version, count] : shards) {
    if (count == context.request.plan.aggregation.shards) newest = std::max(newest, version);
  }
  return newest;
}

}  // namespace lambdadnn
