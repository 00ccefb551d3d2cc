// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-operator --check`: checks everything that a process with these options needs.
#pragma once

#include <vector>

#include "common/base/runtime.h"
#include "operator/server/access_check.h"
#include "operator/server/operator_options.h"

namespace lambdadnn {

// The cluster (access_check.h), the function host, the platform file, and the object store of
// options.check_store. An error: no API server is named.
Result<std::vector<CheckFinding>> CheckEnvironment(Runtime& runtime,
                                                   const OperatorOptions& options);

}  // namespace lambdadnn
