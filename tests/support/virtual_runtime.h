// SPDX-License-Identifier: Apache-2.0
// Virtual time for tests of one task: a sleep or a wait advances the clock. Spawned tasks run to
// their end at once, so only code whose tasks do not wait for their spawner can run on it.
#pragma once

#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/base/runtime.h"

namespace lambdadnn {

class VirtualClock final : public Clock {
 public:
  Instant Now() override { return now_; }
  WallTime Wall() override { return WallTime(now_.time_since_epoch()); }
  void SleepFor(Duration duration) override {
    if (duration > Duration::zero()) now_ += duration;
  }

 private:
  Instant now_{};
};

// Lock and condition: nobody else runs.
class VirtualMonitor final : public Monitor {
 public:
  explicit VirtualMonitor(VirtualClock& clock) : clock_(clock) {}
  void Lock() override {}
  void Unlock() override {}
  std::unique_ptr<MonitorCondition> NewCondition() override {
    return std::make_unique<VirtualMonitor>(clock_);
  }
  void Wait() override { LDNN_CHECK(false, "nobody else runs: this would wait for ever"); }
  bool WaitUntil(Instant deadline) override {
    clock_.SleepFor(deadline - clock_.Now());
    return false;
  }
  void NotifyOne() override {}
  void NotifyAll() override {}

 private:
  VirtualClock& clock_;
};

class VirtualTask final : public Task {
 public:
  void Join() override {}
};

class VirtualExecutor final : public Executor {
 public:
  explicit VirtualExecutor(VirtualClock& clock) : clock_(clock) {}
  [[nodiscard]] std::unique_ptr<Task> Spawn(std::string, std::function<void()> body) override {
    body();
    return std::make_unique<VirtualTask>();
  }
  std::unique_ptr<Monitor> NewMonitor() override {
    return std::make_unique<VirtualMonitor>(clock_);
  }

 private:
  VirtualClock& clock_;
};

struct VirtualRuntime {
  VirtualClock clock;
  VirtualExecutor executor{clock};
  SeededRandom random{1};
  Runtime runtime{clock, executor, random};
};

}  // namespace lambdadnn
