// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/garbage_collector.h"

#include <utility>

namespace lambdadnn {

GarbageCollector::GarbageCollector(Runtime& runtime, Interrupt& interrupt, Transport& transport)
    : transport_(transport), pool_(runtime, interrupt, "garbage", 1) {}

Status GarbageCollector::Add(std::span<const ExchangeObjectName> names, int64_t bytes) {
  names_.insert(names_.end(), names.begin(), names.end());
  bytes_ += bytes;
  const bool is_due = transport_.HoldsInMemory() || std::ssize(names_) >= kGarbageObjects ||
                      bytes_ >= kGarbageBytes;
  if (is_due) Delete();
  return pool_.WaitFor([this] { return requests_ <= kGarbageRequests; });
}

Status GarbageCollector::Finish() {
  if (!names_.empty()) Delete();
  return pool_.WaitIdle();
}

void GarbageCollector::Delete() {
  bytes_ = 0;
  ++requests_;
  pool_.Submit([this, names = std::exchange(names_, {})] {
    const Status status = transport_.Discard(names);
    --requests_;
    return status;
  });
}

}  // namespace lambdadnn
