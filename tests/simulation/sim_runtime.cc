// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_runtime.h"

namespace lambdadnn::simulation {
namespace {

// 2026-01-01T00:00:00Z.
constexpr std::chrono::seconds kEpoch{1'767'225'600};

class SimTask final : public Task {
 public:
  SimTask(SimScheduler& scheduler, Fiber* fiber) : scheduler_(scheduler), fiber_(fiber) {}
  ~SimTask() override { Join(); }
  void Join() override {
    while (!fiber_->finished) {
      fiber_->joiners.push_back(scheduler_.PrepareToBlock());
      scheduler_.Block();
    }
  }

 private:
  SimScheduler& scheduler_;
  Fiber* fiber_;
};

void WakeAll(SimScheduler& scheduler, std::vector<WakeToken>& waiters) {
  for (const WakeToken& token : waiters) scheduler.WakeAt(token, scheduler.Now());
  waiters.clear();
}

}  // namespace

WallTime SimClock::Wall() { return WallTime(kEpoch) + (scheduler_.Now() - Instant{}); }

void SimClock::SleepFor(Duration duration) {
  if (duration <= Duration::zero()) return;
  scheduler_.WakeAt(scheduler_.PrepareToBlock(), scheduler_.Now() + duration);
  scheduler_.Block();
}

void SimMonitor::Lock() {
  while (locked_) {
    lock_waiters_.push_back(scheduler_.PrepareToBlock());
    scheduler_.Block();
  }
  locked_ = true;
}

void SimMonitor::Unlock() {
  LDNN_CHECK(locked_, "unlocking a monitor that nobody holds");
  locked_ = false;
  WakeAll(scheduler_, lock_waiters_);
}

void SimMonitor::Wait() {
  Unlock();
  condition_waiters_.push_back(scheduler_.PrepareToBlock());
  scheduler_.Block();
  Lock();
}

bool SimMonitor::WaitUntil(Instant deadline) {
  if (scheduler_.Now() >= deadline) return false;
  Unlock();
  const WakeToken token = scheduler_.PrepareToBlock();
  condition_waiters_.push_back(token);
  scheduler_.WakeAt(token, deadline);
  scheduler_.Block();
  const bool in_time = scheduler_.Now() < deadline;
  // A waiter whose time ran out would otherwise stay in the list.
  std::erase_if(condition_waiters_, [&token](const WakeToken& waiter) {
    return waiter.fiber == token.fiber && waiter.suspension == token.suspension;
  });
  Lock();
  return in_time;
}

void SimMonitor::NotifyAll() { WakeAll(scheduler_, condition_waiters_); }

std::unique_ptr<Task> SimExecutor::Spawn(std::string name, std::function<void()> body) {
  return std::make_unique<SimTask>(process_.scheduler(),
                                   process_.Spawn(std::move(name), std::move(body)));
}

std::unique_ptr<Monitor> SimExecutor::NewMonitor() {
  return std::make_unique<SimMonitor>(process_.scheduler());
}

}  // namespace lambdadnn::simulation
