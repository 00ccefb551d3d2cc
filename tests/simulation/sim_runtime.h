// SPDX-License-Identifier: Apache-2.0
// The Runtime (common/base/runtime.h) of one simulated process: virtual time, fibers instead of
// threads. Every call that would block a thread suspends the calling fiber.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "tests/simulation/sim_scheduler.h"

namespace lambdadnn::simulation {

class SimClock final : public Clock {
 public:
  explicit SimClock(SimScheduler& scheduler) : scheduler_(scheduler) {}
  Instant Now() override { return scheduler_.Now(); }
  // Virtual time zero is a fixed day, so that timestamps are the same in every replay.
  WallTime Wall() override;
  void SleepFor(Duration duration) override;

 private:
  SimScheduler& scheduler_;
};

class SimMonitor;

class SimCondition final : public MonitorCondition {
 public:
  SimCondition(SimScheduler& scheduler, SimMonitor& monitor)
      : scheduler_(scheduler), monitor_(monitor) {}
  void Wait() override;
  bool WaitUntil(Instant deadline) override;
  void NotifyOne() override;
  void NotifyAll() override;

 private:
  SimScheduler& scheduler_;
  SimMonitor& monitor_;
  std::vector<WakeToken> waiters_;
};

class SimMonitor final : public Monitor {
 public:
  explicit SimMonitor(SimScheduler& scheduler) : scheduler_(scheduler) {}
  void Lock() override;
  void Unlock() override;
  std::unique_ptr<MonitorCondition> NewCondition() override {
    return std::make_unique<SimCondition>(scheduler_, *this);
  }
  void Wait() override { own_.Wait(); }
  bool WaitUntil(Instant deadline) override { return own_.WaitUntil(deadline); }
  void NotifyOne() override { own_.NotifyOne(); }
  void NotifyAll() override { own_.NotifyAll(); }

 private:
  SimScheduler& scheduler_;
  bool locked_ = false;
  std::vector<WakeToken> lock_waiters_;
  SimCondition own_{scheduler_, *this};
};

class SimExecutor final : public Executor {
 public:
  explicit SimExecutor(SimProcess& process) : process_(process) {}
  [[nodiscard]] std::unique_ptr<Task> Spawn(std::string name, std::function<void()> body) override;
  std::unique_ptr<Monitor> NewMonitor() override;

 private:
  SimProcess& process_;
};

}  // namespace lambdadnn::simulation
