// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/slice.h"

namespace lambdadnn {

std::string Role::Name() const {
  const char* const name = kind == RoleKind::kWorker   ? "worker-"
                           : kind == RoleKind::kServer ? "server-"
                                                       : "profile-";
  return name + std::to_string(rank);
}

std::vector<AssignedRole> RolesOf(const AggregationPlan& aggregation, const AssignedRole& role) {
  std::vector<AssignedRole> roles = {role};
  if (role.role.kind != RoleKind::kWorker) return roles;
  for (const ServerPosition& position : ServersOn(aggregation, role.role.rank)) {
    const Role server = {RoleKind::kServer, ServerRank(aggregation, position), position};
    roles.push_back({server, role.attempt});
  }
  return roles;
}

std::string MakeInvocationId(const SliceRequest& request) {
  return request.job.uid + ".r" + std::to_string(request.plan.revision) + ".i" +
         std::to_string(request.incarnation) + "." + request.role().Name() + ".f" +
         std::to_string(request.first_iteration) + ".a" +
         std::to_string(request.roles.front().attempt);
}

}  // namespace lambdadnn
