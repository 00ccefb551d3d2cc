// SPDX-License-Identifier: Apache-2.0
// Requests between simulated processes: the handler runs in a fiber of the process that is asked,
// so that the death of either side leaves the other alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "common/base/status.h"
#include "tests/simulation/sim_scheduler.h"

namespace lambdadnn::simulation {

// Calls `handler` in `target` and returns its answer; kUnavailable when the target is dead or
// does not answer within `timeout`. One way takes `latency`.
template <typename T>
Result<T> CallProcess(SimProcess& caller, SimProcess& target, Duration latency, Duration timeout,
                      std::function<T()> handler) {
  struct Exchange {
    std::optional<T> answer;
    bool refused = false;
    WakeToken caller;
  };
  SimScheduler& scheduler = caller.scheduler();
  auto exchange = std::make_shared<Exchange>();
  exchange->caller = scheduler.PrepareToBlock();
  scheduler.At(scheduler.Now() + latency,
               [&scheduler, &target, exchange, latency, handler = std::move(handler)] {
                 if (!target.alive()) {
                   exchange->refused = true;
                   scheduler.WakeAt(exchange->caller, scheduler.Now() + latency);
                   return;
                 }
                 (void)target.Spawn("request", [&scheduler, exchange, latency, handler] {
                   exchange->answer = handler();
                   scheduler.WakeAt(exchange->caller, scheduler.Now() + latency);
                 });
               });
  scheduler.WakeAt(exchange->caller, scheduler.Now() + timeout);
  scheduler.Block();
  if (exchange->refused) return UnavailableError("sim: connection refused");
  if (!exchange->answer.has_value()) return UnavailableError("sim: no answer in time");
  return *std::move(exchange->answer);
}

}  // namespace lambdadnn::simulation
