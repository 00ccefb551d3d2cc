// SPDX-License-Identifier: Apache-2.0
// Concurrency as an interface: tasks and monitors are threads and condition variables in
// production, fibers of one thread in the simulator. Blocking code uses these, never std::thread or
// std::condition_variable. A std::mutex is fine for state that is never held across a blocking
// call.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"

namespace lambdadnn {

// What tasks that hold a monitor's lock wait for. Wait* release the lock while they block and hold
// it when they return; spurious wake-ups happen.
class MonitorCondition {
 public:
  virtual ~MonitorCondition() = default;
  virtual void Wait() = 0;
  // False once `deadline` has passed.
  virtual bool WaitUntil(Instant deadline) = 0;
  // With the lock. Of those that all Wait for the same, without a deadline, one.
  virtual void NotifyOne() = 0;
  virtual void NotifyAll() = 0;
};

// One lock with one condition of its own, and more for those that wait for different things: each
// task that is woken in vain costs two context switches.
class Monitor : public MonitorCondition {
 public:
  virtual void Lock() = 0;
  virtual void Unlock() = 0;
  // Must not outlive this.
  virtual std::unique_ptr<MonitorCondition> NewCondition() = 0;
};

class MonitorLock {
 public:
  explicit MonitorLock(Monitor& monitor) : monitor_(monitor) { monitor_.Lock(); }
  ~MonitorLock() { monitor_.Unlock(); }
  MonitorLock(const MonitorLock&) = delete;
  MonitorLock& operator=(const MonitorLock&) = delete;

 private:
  Monitor& monitor_;
};

// A running task. The destructor joins.
class Task {
 public:
  virtual ~Task() = default;
  // Returns when the task's function has returned; may be called more than once.
  virtual void Join() = 0;
};

// Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `body` concurrently with the caller. `name` shows in debuggers and traces.
  [[nodiscard]] virtual std::unique_ptr<Task> Spawn(std::string name,
                                                    std::function<void()> body) = 0;
  virtual std::unique_ptr<Monitor> NewMonitor() = 0;
};

class ThreadExecutor final : public Executor {
 public:
  [[nodiscard]] std::unique_ptr<Task> Spawn(std::string name, std::function<void()> body) override;
  std::unique_ptr<Monitor> NewMonitor() override;
};

}  // namespace lambdadnn
