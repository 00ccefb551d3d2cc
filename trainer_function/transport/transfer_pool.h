// SPDX-License-Identifier: Apache-2.0
// A few concurrent transfers of one slice: `threads` tasks that take jobs in the order of
// submission. A job may block (that is what it is for); the first failure is kept and skips the
// jobs not yet begun. Used from one task; jobs run on others. Destroying a pool with jobs in
// progress aborts the slice (they could wait for long), then waits for them: on the good path,
// WaitIdle comes first.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/base/status.h"
#include "trainer_function/transport/interrupt.h"

namespace lambdadnn {

// Enough to hide a request's latency behind others', few enough for a fraction of a core.
inline constexpr int kTransferThreads = 4;

class TransferPool {
 public:
  TransferPool(Runtime& runtime, Interrupt& interrupt, const std::string& name,
               int threads = kTransferThreads);
  ~TransferPool();
  TransferPool(const TransferPool&) = delete;
  TransferPool& operator=(const TransferPool&) = delete;

  void Submit(std::function<Status()> job);
  // Waits until every submitted job has ended; the first failure of all so far.
  Status WaitIdle();
  // Waits until the condition holds (checked when jobs end) or a job has failed.
  Status WaitFor(const std::function<bool()>& condition);

 private:
  void RunWorker();

  Interrupt& interrupt_;
  std::unique_ptr<Monitor> monitor_;
  std::deque<std::function<Status()>> queue_;
  int running_ = 0;
  bool closed_ = false;
  Status failure_;
  std::vector<std::unique_ptr<Task>> workers_;
};

}  // namespace lambdadnn
