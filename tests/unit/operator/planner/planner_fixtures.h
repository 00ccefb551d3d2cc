// SPDX-License-Identifier: Apache-2.0
// The inputs of the planner's tests.
#pragma once

#include "operator/planner/published_workloads.h"  // IWYU pragma: export
