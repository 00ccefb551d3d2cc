// SPDX-License-Identifier: Apache-2.0
#include "common/plan/exchange_roles.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/plan/geometry.h"

namespace lambdadnn {
namespace {

bool Within(int value, int count) { return value >= 0 && value < count; }

// All roots but the one of `group`.
std::vector<ExchangeRole> OtherRoots(const AggregationPlan& aggregation, int group) {
  std::vector<ExchangeRole> roots;
  for (int other = 0; other < aggregation.spread; ++other) {
    if (other != group) roots.push_back({aggregation.server_layers(), 0, other});
  }
  return roots;
}

std::vector<ExchangeRole> AllWorkers(const AggregationPlan& aggregation) {
  std::vector<ExchangeRole> workers;
  for (int rank = 0; rank < aggregation.workers(); ++rank) workers.push_back({0, rank, 0});
  return workers;
}

void Append(const std::vector<ExchangeRole>& roles, std::vector<ExchangeRole>* to) {
  to->insert(to->end(), roles.begin(), roles.end());
}

void KeepDistinct(std::vector<ExchangeRole>* roles) {
  std::sort(roles->begin(), roles->end());
  roles->erase(std::unique(roles->begin(), roles->end()), roles->end());
}

// The functions of these roles but `function`.
std::vector<ExchangeRole> OthersOf(const AggregationPlan& aggregation, const ExchangeRole& function,
                                   const std::vector<ExchangeRole>& roles) {
  std::vector<ExchangeRole> others;
  for (const ExchangeRole& role : roles) {
    const ExchangeRole other = FunctionOf(aggregation, role);
    if (other != function) others.push_back(other);
  }
  KeepDistinct(&others);
  return others;
}

}  // namespace

bool IsExchanged(const AggregationPlan& aggregation, const ExchangeObject& object) {
  if (!Within(object.shard, aggregation.shards)) return false;
  const int root = aggregation.server_layers();
  if (object.kind != ExchangeKind::kGradient) return object.layer == root && object.index == 0;
  return Within(object.layer, root) && Within(object.index, aggregation.Width(object.layer));
}

bool IsRoleOf(const AggregationPlan& aggregation, const ExchangeRole& role) {
  return Within(role.layer, aggregation.server_layers() + 1) &&
         Within(role.index, aggregation.Width(role.layer)) &&
         Within(role.group, role.layer == 0 ? 1 : aggregation.spread);
}

ExchangeRole WriterOf(const AggregationPlan& aggregation, const ExchangeObject& object) {
  LDNN_CHECK(IsExchanged(aggregation, object), "an object that the plan does not have");
  const int group = object.layer == 0 ? 0 : GroupOfShard(aggregation, object.shard);
  return {object.layer, object.index, group};
}

std::vector<ExchangeRole> ReadersOf(const AggregationPlan& aggregation,
                                    const ExchangeObject& object) {
  LDNN_CHECK(IsExchanged(aggregation, object), "an object that the plan does not have");
  const int group = GroupOfShard(aggregation, object.shard);
  switch (object.kind) {
    case ExchangeKind::kWeights:
      return AllWorkers(aggregation);
    case ExchangeKind::kNorms:
      return OtherRoots(aggregation, group);
    case ExchangeKind::kGradient:
      break;
  }
  return {{object.layer + 1, ParentOf(aggregation, object.layer, object.index), group}};
}

std::vector<ExchangeRole> MeetsWith(const AggregationPlan& aggregation, const ExchangeRole& role) {
  LDNN_CHECK(IsRoleOf(aggregation, role), "a role that the plan does not have");
  const int root = aggregation.server_layers();
  std::vector<ExchangeRole> roles;
  // A worker has shards of all groups, a server those of its own.
  const int first = role.layer == 0 ? 0 : role.group;
  const int last = role.layer == 0 ? aggregation.spread - 1 : role.group;
  for (int group = first; group <= last; ++group) {
    if (role.layer < root) {
      roles.push_back({role.layer + 1, ParentOf(aggregation, role.layer, role.index), group});
    }
    if (role.layer == 0) roles.push_back({root, 0, group});
  }
  if (role.layer > 0) {
    const Range children = Children(aggregation, role.layer, role.index);
    for (int64_t child = children.begin; child < children.end; ++child) {
      roles.push_back({role.layer - 1, static_cast<int>(child), role.layer == 1 ? 0 : role.group});
    }
  }
  if (role.layer == root) {
    Append(AllWorkers(aggregation), &roles);
    Append(OtherRoots(aggregation, role.group), &roles);
  }
  KeepDistinct(&roles);
  return roles;
}

ExchangeRole FunctionOf(const AggregationPlan& aggregation, const ExchangeRole& role) {
  if (aggregation.placement == Placement::kDedicated || role.layer == 0) return role;
  return {0, HostOf(aggregation, {role.layer, role.index, role.group}), 0};
}

std::vector<ExchangeRole> FunctionsReading(const AggregationPlan& aggregation,
                                           const ExchangeObject& object) {
  return OthersOf(aggregation, FunctionOf(aggregation, WriterOf(aggregation, object)),
                  ReadersOf(aggregation, object));
}

std::vector<ExchangeRole> FunctionsMeeting(const AggregationPlan& aggregation,
                                           const ExchangeRole& function) {
  std::vector<ExchangeRole> met = MeetsWith(aggregation, function);
  if (aggregation.placement == Placement::kWorkers) {
    for (const ServerPosition& server : ServersOn(aggregation, function.index)) {
      Append(MeetsWith(aggregation, {server.level, server.index, server.group}), &met);
    }
  }
  return OthersOf(aggregation, function, met);
}

}  // namespace lambdadnn
