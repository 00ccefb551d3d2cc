// SPDX-License-Identifier: Apache-2.0
// The inputs of the planner's tests.
#pragma once

#include "common/plan/number_fields.h"
#include "operator/planner/published_workloads.h"  // IWYU pragma: export

namespace lambdadnn {

// A random line of store bandwidth may leave some sizes without any, but not all of them: that is
// refused.
inline void LetSomeSizeRun(Platform* platform) {
  if (!ProblemOfStoreLine(*platform).empty()) platform->function_store_intercept = 1e7;
}

}  // namespace lambdadnn
