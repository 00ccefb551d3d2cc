// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/session/rejoin.h"

#include <algorithm>
#include <map>
#include <vector>

#include "common/protocol/object_keys.h"

namespace lambdadnn {

Result<int64_t> FindVersionToJoin(const RoleContext& context) {
  LDNN_ASSIGN_OR_RETURN(const std::vector<ObjectInfo> objects,
                        ListAll(context.store, ExchangeScopePrefix(context.scope())));
  std::map<int64_t, int> shards;  // of each version
  for (const ObjectInfo& object : objects) {
    if (const auto version = VersionOfWeightsKey(context.scope(), object.key)) ++shards[*version];
  }
  int64_t newest = context.request.first_iteration;
  for (const auto& [version, count] : shards) {
    if (count == context.request.plan.aggregation.shards) newest = std::max(newest, version);
  }
  return newest;
}

}  // namespace lambdadnn
