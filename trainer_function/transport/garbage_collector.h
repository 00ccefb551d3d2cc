// SPDX-License-Identifier: Apache-2.0
// Deletes exchanged objects that no role reads any more, on a task of its own: no push and no
// iteration waits for it, unless the store deletes more slowly than it is filled. They are
// collected over iterations, as stores delete many objects with one request. Used from one task.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/runtime.h"
#include "common/base/status.h"
#include "trainer_function/transport/interrupt.h"
#include "trainer_function/transport/transfer_pool.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// Deleted together; fewer once they have so many bytes, or where the transport holds them in
// memory.
inline constexpr int64_t kGarbageObjects = 8;
inline constexpr int64_t kGarbageBytes = int64_t{16} << 20;
// Requests that may be under way or waiting.
inline constexpr int kGarbageRequests = 2;

class GarbageCollector {
 public:
  // All must outlive this.
  GarbageCollector(Runtime& runtime, Interrupt& interrupt, Transport& transport);

  // `bytes`: of all of them together. Waits only while there are more than kGarbageRequests; the
  // first failure so far.
  Status Add(std::span<const ExchangeObjectName> names, int64_t bytes);
  // Deletes all that was added; the first failure.
  Status Finish();

 private:
  void Delete();

  Transport& transport_;
  std::vector<ExchangeObjectName> names_;
  int64_t bytes_ = 0;
  std::atomic<int> requests_{0};  // that have not ended
  TransferPool pool_;
};

}  // namespace lambdadnn
