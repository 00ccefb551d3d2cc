// SPDX-License-Identifier: Apache-2.0
// Waiting for an object of the store that another role writes.
#pragma once

#include <functional>

#include "common/base/runtime.h"
#include "common/base/status.h"
#include "common/plan/poll_schedule.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// A read that arrives torn is repeated this often.
inline constexpr int kReadAttempts = 5;

// Calls `attempt` until it ends in something else than kNotFound, with the back-off of exchanges. A
// read that arrives torn is repeated a few times.
template <typename T>
Result<T> AwaitObject(const RoleContext& context, const std::function<Result<T>()>& attempt) {
  const Instant start = context.runtime.clock.Now();
  for (int torn = 0;;) {
    Result<T> result = attempt();
    const StatusCode code = result.status().code();
    if (code == StatusCode::kDataLoss && ++torn >= kReadAttempts) return result;
    if (code != StatusCode::kNotFound && code != StatusCode::kDataLoss) return result;
    const Instant now = context.runtime.clock.Now();
    const Status woken =
        context.interrupt.SleepUntil(now + NextPollGap(now - start, Duration::zero()));
    if (!woken.ok()) return woken;
  }
}

}  // namespace lambdadnn
