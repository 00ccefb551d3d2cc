// SPDX-License-Identifier: Apache-2.0
// The registry of the kinds that this operator reconciles.
#pragma once

#include <vector>

#include "operator/controller/dependencies.h"
#include "operator/controller/loop/reconcilable.h"
#include "operator/controller/options.h"

namespace lambdadnn {

// Jobs first. Both outlive what the kinds make.
std::vector<ReconciledKind> ReconciledKinds(const ControllerDependencies& dependencies,
                                            const ControllerOptions& options);

}  // namespace lambdadnn
