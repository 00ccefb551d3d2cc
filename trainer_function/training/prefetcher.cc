// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/prefetcher.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace lambdadnn {

Prefetcher::Prefetcher(Runtime& runtime, Interrupt& interrupt, Range iterations, Prepare prepare)
    : interrupt_(interrupt),
      iterations_(iterations),
      prepare_(std::move(prepare)),
      monitor_(runtime.executor.NewMonitor()),
      task_(runtime.executor.Spawn("prefetcher", [this] { Run(); })) {}

Prefetcher::~Prefetcher() {
  {
    const MonitorLock lock(*monitor_);
    closed_ = true;
    monitor_->NotifyAll();
  }
  task_->Join();
}

Result<Batch> Prefetcher::Next() {
  const MonitorLock lock(*monitor_);
  while (waiting_.empty() && failure_.ok()) monitor_->Wait();
  // What was prepared before something failed comes first, as if all were read one by one.
  if (waiting_.empty()) return failure_;
  Batch batch = std::move(waiting_.front());
  waiting_.pop_front();
  monitor_->NotifyAll();
  return batch;
}

int Prefetcher::most_waiting() {
  const MonitorLock lock(*monitor_);
  return most_waiting_;
}

Status Prefetcher::Check() {
  LDNN_RETURN_IF_ERROR(interrupt_.Check());
  const MonitorLock lock(*monitor_);
  return closed_ ? CancelledError("the batch is not needed any more") : OkStatus();
}

void Prefetcher::Run() {
  const MonitorLock lock(*monitor_);
  for (int64_t iteration = iterations_.begin; iteration < iterations_.end; ++iteration) {
    while (!closed_ && std::ssize(waiting_) >= kPreparedBatches) monitor_->Wait();
    if (closed_) return;
    monitor_->Unlock();
    Result<Batch> batch = prepare_(iteration, [this] { return Check(); });
    monitor_->Lock();
    if (!batch.ok()) {
      failure_ = batch.status();
      monitor_->NotifyAll();
      return;
    }
    waiting_.push_back(std::move(batch).value());
    most_waiting_ = std::max(most_waiting_, static_cast<int>(waiting_.size()));
    monitor_->NotifyAll();
  }
  failure_ = FailedPreconditionError("there is no further iteration to read a batch for");
  monitor_->NotifyAll();
}

}  // namespace lambdadnn
