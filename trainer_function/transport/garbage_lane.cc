// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/garbage_lane.h"

#include <utility>

namespace lambdadnn {

GarbageLane::GarbageLane(Runtime& runtime, Interrupt& interrupt, Transport& transport)
    : transport_(transport), lane_(runtime, interrupt, "garbage", 1) {}

Status GarbageLane::Add(std::span<const ExchangeObjectName> names, int64_t bytes) {
  names_.insert(names_.end(), names.begin(), names.end());
  bytes_ += bytes;
  if (std::ssize(names_) >= kGarbageObjects || bytes_ >= kGarbageBytes) Delete();
  return lane_.WaitFor([] { return true; });
}

Status GarbageLane::Finish() {
  if (!names_.empty()) Delete();
  return lane_.WaitIdle();
}

void GarbageLane::Delete() {
  bytes_ = 0;
  lane_.Submit([&transport = transport_, names = std::exchange(names_, {})] {
    return transport.Discard(names);
  });
}

}  // namespace lambdadnn
