// SPDX-License-Identifier: Apache-2.0
// What an API server must know to serve jobs: the embedded CRD with its rules.
#pragma once

#include "operator/kube/resource_definition.h"

namespace lambdadnn {

ResourceDefinition JobDefinition();

}  // namespace lambdadnn
