// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/interrupt.h"

#include <algorithm>

namespace lambdadnn {
Interrupt::Interrupt(Runtime& runtime, Instant deadline)
    : clock_(runtime.clock), deadline_(deadline), monitor_(runtime.executor.NewMonitor()) {}

void Interrupt::Abort() {
  const MonitorLock lock(*monitor_);
  aborted_.store(true);
  monitor_->NotifyAll();
}

Status Interrupt::Check() {
  if (aborted()) return CancelledError("the slice was told to end at once");
  if (clock_.Now() >= deadline_) return DeadlineExceededError("the slice's time is up");
  return OkStatus();
}

Status Interrupt::SleepUntil(Instant time) {
  const Instant wake = std::min(time, deadline_);
  {
    const MonitorLock lock(*monitor_);
    while (!aborted() && clock_.Now() < wake) monitor_->WaitUntil(wake);
  }
  if (aborted()) return Check();
  return clock_.Now() >= time ? OkStatus() : Check();
}

Status Interrupt::SleepUntil(Instant time, ArrivalWatch& watch) {
  for (;;) {
    LDNN_RETURN_IF_ERROR(Check());
    const Instant now = clock_.Now();
    if (now >= time) return OkStatus();
    if (watch.Wait(std::min({time - now, deadline_ - now, kAbortLook}))) return Check();
  }
}

}  // namespace lambdadnn
