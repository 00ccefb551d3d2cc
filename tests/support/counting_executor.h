// SPDX-License-Identifier: Apache-2.0
// Threads of which every wait that a notification ended is counted: each costs two context
// switches.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "common/base/executor.h"

namespace lambdadnn {

class CountingMonitor final : public Monitor {
 public:
  // `monitor` has the lock; null = this is a condition of another monitor's.
  CountingMonitor(std::unique_ptr<MonitorCondition> condition, Monitor* monitor,
                  std::atomic<int64_t>& wakes)
      : condition_(std::move(condition)), monitor_(monitor), wakes_(wakes) {}
  void Lock() override { monitor_->Lock(); }
  void Unlock() override { monitor_->Unlock(); }
  std::unique_ptr<MonitorCondition> NewCondition() override {
    return std::make_unique<CountingMonitor>(monitor_->NewCondition(), nullptr, wakes_);
  }
  void Wait() override {
    condition_->Wait();
    ++wakes_;
  }
  bool WaitUntil(Instant deadline) override {
    const bool in_time = condition_->WaitUntil(deadline);
    if (in_time) ++wakes_;
    return in_time;
  }
  void NotifyOne() override { condition_->NotifyOne(); }
  void NotifyAll() override { condition_->NotifyAll(); }

 private:
  std::unique_ptr<MonitorCondition> condition_;
  Monitor* monitor_;
  std::atomic<int64_t>& wakes_;
};

class CountingExecutor final : public Executor {
 public:
  [[nodiscard]] std::unique_ptr<Task> Spawn(std::string name, std::function<void()> body) override {
    return threads_.Spawn(std::move(name), std::move(body));
  }
  std::unique_ptr<Monitor> NewMonitor() override {
    std::unique_ptr<Monitor> monitor = threads_.NewMonitor();
    Monitor* const lock = monitor.get();
    return std::make_unique<CountingMonitor>(std::move(monitor), lock, wakes_);
  }
  int64_t wakes() const { return wakes_; }

 private:
  ThreadExecutor threads_;
  std::atomic<int64_t> wakes_{0};
};

}  // namespace lambdadnn
