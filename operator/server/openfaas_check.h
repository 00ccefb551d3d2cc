// SPDX-License-Identifier: Apache-2.0
// What `--check` says about a gateway of OpenFaaS. Changes nothing.
#pragma once

#include <vector>

#include "operator/backends/openfaas/gateway.h"
#include "operator/server/access_check.h"

namespace lambdadnn {

// `max_functions` = what the operator was told; 0 = nothing.
std::vector<CheckFinding> CheckGateway(OpenFaasGateway& gateway, int max_functions);

}  // namespace lambdadnn
