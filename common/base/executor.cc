// SPDX-License-Identifier: Apache-2.0
#include "common/base/executor.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace lambdadnn {
namespace {

class ThreadCondition final : public MonitorCondition {
 public:
  explicit ThreadCondition(std::mutex& mutex) : mutex_(mutex) {}
  void Wait() override {
    std::unique_lock lock(mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  bool WaitUntil(Instant deadline) override {
    std::unique_lock lock(mutex_, std::adopt_lock);
    const bool in_time = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void NotifyOne() override { condition_.notify_one(); }
  void NotifyAll() override { condition_.notify_all(); }

 private:
  std::mutex& mutex_;
  std::condition_variable condition_;
};

class ThreadMonitor final : public Monitor {
 public:
  void Lock() override { mutex_.lock(); }
  void Unlock() override { mutex_.unlock(); }
  std::unique_ptr<MonitorCondition> NewCondition() override {
    return std::make_unique<ThreadCondition>(mutex_);
  }
  void Wait() override { own_.Wait(); }
  bool WaitUntil(Instant deadline) override { return own_.WaitUntil(deadline); }
  void NotifyOne() override { own_.NotifyOne(); }
  void NotifyAll() override { own_.NotifyAll(); }

 private:
  std::mutex mutex_;
  ThreadCondition own_{mutex_};
};

class ThreadTask final : public Task {
 public:
  explicit ThreadTask(std::thread thread) : thread_(std::move(thread)) {}
  ~ThreadTask() override { Join(); }
  void Join() override {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Task> ThreadExecutor::Spawn(std::string name, std::function<void()> body) {
  constexpr size_t kMaxThreadName = 15;  // Linux keeps 15 characters
  name.resize(std::min(name.size(), kMaxThreadName));
  return std::make_unique<ThreadTask>(std::thread([name = std::move(name), body = std::move(body)] {
    pthread_setname_np(pthread_self(), name.c_str());
    body();
  }));
}

std::unique_ptr<Monitor> ThreadExecutor::NewMonitor() { return std::make_unique<ThreadMonitor>(); }

}  // namespace lambdadnn
