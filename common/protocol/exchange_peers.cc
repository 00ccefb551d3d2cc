// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/exchange_peers.h"

#include "common/plan/geometry.h"

namespace lambdadnn {

ExchangeObject ExchangeObjectOf(const ExchangeObjectName& name) {
  const auto exchanged = [&](ExchangeKind as) {
    return ExchangeObject{as, name.layer, name.shard, name.index};
  };
  switch (name.kind) {
    case ObjectKind::kWeights:
      return exchanged(ExchangeKind::kWeights);
    case ObjectKind::kNorms:
      return exchanged(ExchangeKind::kNorms);
    default:
      return exchanged(ExchangeKind::kGradient);
  }
}

ExchangeRole ExchangeRoleOf(const Role& role) {
  if (role.kind == RoleKind::kWorker) return {0, role.rank, 0};
  return {role.position.level, role.position.index, role.position.group};
}

Role RoleOf(const AggregationPlan& aggregation, const ExchangeRole& role) {
  if (role.layer == 0) return {RoleKind::kWorker, role.index, {}};
  const ServerPosition position = {role.layer, role.index, role.group};
  return {RoleKind::kServer, ServerRank(aggregation, position), position};
}

std::vector<Role> RolesToDial(const AggregationPlan& aggregation, const Role& role) {
  const ExchangeRole own = ExchangeRoleOf(role);
  std::vector<Role> roles;
  for (const ExchangeRole& other : FunctionsMeeting(aggregation, own)) {
    if (OpensConnection(own, other)) roles.push_back(RoleOf(aggregation, other));
  }
  return roles;
}

}  // namespace lambdadnn
