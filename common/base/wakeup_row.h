// SPDX-License-Identifier: Apache-2.0
// Wake-ups between the processes of one machine: a row of counters in a file that all of them map.
// A writer increments (rings) the counter of what it has made; a reader sleeps in the kernel
// (futex) until that counter changes. Several numbers share a counter, and a process on another
// machine that sees the file wakes nobody here: so a wake-up is only a hint to check, and the lack
// of one proves nothing.
//
// Thread-safe; a process that dies holds no lock. Waits use the machine's clock, not the runtime's:
// virtual time has no processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace lambdadnn {

class WakeupRow {
 public:
  // Makes the file where it is not there; its folder must be. kUnavailable when that fails.
  static Result<std::unique_ptr<WakeupRow>> Open(const std::string& path);
  ~WakeupRow();
  WakeupRow(const WakeupRow&) = delete;
  WakeupRow& operator=(const WakeupRow&) = delete;

  // How often `number`, or one that shares its counter, has been rung. Wraps around.
  uint32_t Rung(uint64_t number) const;
  void Ring(uint64_t number);
  // Until Rung(number) is not `seen`, at most `at_most`; may return earlier.
  void Wait(uint64_t number, uint32_t seen, Duration at_most) const;

 private:
  explicit WakeupRow(uint32_t* counters) : counters_(counters) {}
  uint32_t* CounterOf(uint64_t number) const;

  uint32_t* const counters_;
};

}  // namespace lambdadnn
