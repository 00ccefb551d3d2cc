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

void SimCondition::Wait() {
  monitor_.Unlock();
  waiters_.push_back(scheduler_.PrepareToBlock());
  scheduler_.Block();
  monitor_.Lock();
}

bool SimCondition::WaitUntil(Instant deadline) {
  if (scheduler_.Now() >= deadline) return false;
  monitor_.Unlock();
  const WakeToken token = scheduler_.PrepareToBlock();
  waiters_.push_back(token);
  scheduler_.WakeAt(token, deadline);
  scheduler_.Block();
  const bool in_time = scheduler_.Now() < deadline;
  // A waiter whose time ran out would otherwise stay in the list.
  std::erase_if(waiters_, [&token](const WakeToken& waiter) {
    return waiter.fiber == token.fiber && waiter.suspension == token.suspension;
  });
  monitor_.Lock();
  return in_time;
}

void SimCondition::NotifyOne() {
  if (waiters_.empty()) return;
  scheduler_.WakeAt(waiters_.front(), scheduler_.Now());
  waiters_.erase(waiters_.begin());
}

void SimCondition::NotifyAll() { WakeAll(scheduler_, waiters_); }

std::unique_ptr<Task> SimExecutor::Spawn(std::string name, std::function<void()> body) {
  return std::make_unique<SimTask>(process_.scheduler(),
                                   process_.Spawn(std::move(name), std::move(body)));
}

std::unique_ptr<Monitor> SimExecutor::NewMonitor() {
  return std::make_unique<SimMonitor>(process_.scheduler());
}

}  // namespace lambdadnn::simulation
