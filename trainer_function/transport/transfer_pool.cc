// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/transfer_pool.h"

namespace lambdadnn {

TransferPool::TransferPool(Runtime& runtime, Interrupt& interrupt, const std::string& name,
                           int threads)
    : interrupt_(interrupt),
      monitor_(runtime.executor.NewMonitor()),
      to_do_(monitor_->NewCondition()),
      idle_(monitor_->NewCondition()) {
  for (int worker = 0; worker < threads; ++worker) {
    workers_.push_back(
        runtime.executor.Spawn(name + "-" + std::to_string(worker), [this] { RunWorker(); }));
  }
}

TransferPool::~TransferPool() {
  bool busy = false;
  {
    const MonitorLock lock(*monitor_);
    closed_ = true;
    busy = running_ > 0;
    queue_.clear();
    to_do_->NotifyAll();
  }
  if (busy) interrupt_.Abort();
  workers_.clear();  // joins
}

void TransferPool::Submit(std::function<Status()> job) {
  const MonitorLock lock(*monitor_);
  if (!failure_.ok()) return;
  queue_.push_back(std::move(job));
  to_do_->NotifyOne();
}

Status TransferPool::WaitIdle() {
  const MonitorLock lock(*monitor_);
  while (running_ > 0 || !queue_.empty()) idle_->Wait();
  return failure_;
}

Status TransferPool::WaitFor(const std::function<bool()>& condition) {
  const MonitorLock lock(*monitor_);
  while (failure_.ok() && !condition()) monitor_->Wait();
  return failure_;
}

void TransferPool::RunWorker() {
  const MonitorLock lock(*monitor_);
  for (;;) {
    while (!closed_ && queue_.empty()) to_do_->Wait();
    if (closed_) return;
    const std::function<Status()> job = std::move(queue_.front());
    queue_.pop_front();
    ++running_;
    monitor_->Unlock();
    Status status = job();
    monitor_->Lock();
    --running_;
    if (!status.ok() && failure_.ok()) {
      failure_ = std::move(status);
      queue_.clear();
    }
    monitor_->NotifyAll();
    if (running_ == 0 && queue_.empty()) idle_->NotifyAll();
  }
}

}  // namespace lambdadnn
