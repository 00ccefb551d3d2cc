// SPDX-License-Identifier: Apache-2.0
// What `--check` and `doctor` say about a gateway of OpenFaaS. Changes nothing.
#pragma once

#include <vector>

#include "operator/backends/openfaas/gateway.h"
#include "operator/cluster_view/cluster_limits.h"
#include "operator/server/access_check.h"

namespace lambdadnn {

// By asking it. `max_functions` = what the operator was told; 0 = nothing.
std::vector<CheckFinding> CheckGateway(OpenFaasGateway& gateway, int max_functions);

// The bound on functions that holds for all jobs together, if there is one.
std::vector<CheckFinding> CheckFunctionBound(int most, int of_users);

// By what Deployments say (openfaas_limits.h): whether requests may take as long as they do.
CheckFinding CheckTimeouts(const ClusterLimits& limits);

}  // namespace lambdadnn
