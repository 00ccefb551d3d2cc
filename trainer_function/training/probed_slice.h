// SPDX-License-Identifier: Apache-2.0
// Slices that role `profile` runs in its own process to see what the roles of a training cost.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "common/protocol/slice.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// Steps this long (CPU seconds) hide what an exchange costs, and measuring with them takes long.
inline constexpr double kLongStepCpuSeconds = 0.1;

// As `request`, for so many iterations with a vector of so many elements: its objects lie where no
// training of this job ever reads, and nothing stops it early. Aggregation, functions and roles are
// left to the caller.
SliceRequest ProbedSlice(const SliceRequest& request, std::string_view what, int64_t elements,
                         int64_t iterations);
// Its first checkpoint: of zeros.
Status WriteZeroCheckpoint(const RoleContext& context);

// Until `is_so`, at which it looks every few milliseconds. kDeadlineExceeded: it was not within
// this time; or why the slice ended.
Status LookUntil(const RoleContext& context, Duration within, const std::function<bool()>& is_so);

}  // namespace lambdadnn
