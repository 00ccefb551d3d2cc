// SPDX-License-Identifier: Apache-2.0
// Ends waits of a slice that was aborted or whose time is up. Every wait of the data plane sleeps
// here, so that an abort takes effect at once however long the back-off has grown. Thread-safe.
#pragma once

#include <atomic>
#include <memory>

#include "common/base/runtime.h"
#include "common/base/status.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {

// Waits on others' monitors look for an abort as often.
inline constexpr Duration kAbortLook = std::chrono::milliseconds(100);

class Interrupt {
 public:
  // `deadline`: when waits end with kDeadlineExceeded.
  Interrupt(Runtime& runtime, Instant deadline);

  // From now on everything returns kCancelled.
  void Abort();
  bool aborted() const { return aborted_.load(); }
  Instant deadline() const { return deadline_; }
  // OK, kCancelled or kDeadlineExceeded.
  Status Check();
  // OK once `time` has come; the errors of Check() as soon as they hold.
  Status SleepUntil(Instant time);
  // As SleepUntil, but ends with OK as soon as `watch` says so. An abort takes effect within a
  // tenth of a second.
  Status SleepUntil(Instant time, ArrivalWatch& watch);

 private:
  Clock& clock_;
  const Instant deadline_;
  std::unique_ptr<Monitor> monitor_;
  std::atomic<bool> aborted_{false};
};

}  // namespace lambdadnn
