// SPDX-License-Identifier: Apache-2.0
// The roles of slices and the objects of their store as those of the exchange, and whom a role
// connects to. Pure.
#pragma once

#include <vector>

#include "common/plan/exchange_roles.h"
#include "common/protocol/exchange_object_name.h"
#include "common/protocol/slice.h"

namespace lambdadnn {

ExchangeObject ExchangeObjectOf(const ExchangeObjectName& name);
// Of a worker or a server.
ExchangeRole ExchangeRoleOf(const Role& role);
Role RoleOf(const AggregationPlan& aggregation, const ExchangeRole& role);
// Of the function with this first role, the functions that it meets and opens the connection to:
// `peers` of its slice's request.
std::vector<Role> RolesToDial(const AggregationPlan& aggregation, const Role& role);

}  // namespace lambdadnn
