// SPDX-License-Identifier: Apache-2.0
// A few concurrent transfers of one slice: `threads` tasks that take jobs in the order of
// submission. Jobs may block. The first error is kept, and jobs that have not begun are skipped.
// Used from one task; jobs run on others. Call WaitIdle before destroying the pool: destroying it
// with jobs in progress aborts the slice, since they could wait for long, and then waits for them.
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
  std::unique_ptr<Monitor> monitor_;         // its own condition: some job has ended
  std::unique_ptr<MonitorCondition> to_do_;  // for the pool's tasks
  std::unique_ptr<MonitorCondition> idle_;
  std::deque<std::function<Status()>> queue_;
  int running_ = 0;
  bool closed_ = false;
  Status failure_;
  std::vector<std::unique_ptr<Task>> workers_;
};

}  // namespace lambdadnn
