// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/store/store_lanes.h"

#include <tuple>
#include <utility>

namespace lambdadnn {

StoreLanes::StoreLanes(Executor& executor, const Limits& limits)
    : executor_(executor), limits_(limits), monitor_(executor.NewMonitor()) {}

StoreLanes::~StoreLanes() { Close(); }

int StoreLanes::UnderWayOf(const std::string& namespace_name) const {
  const auto found = under_way_of_.find(namespace_name);
  return found == under_way_of_.end() ? 0 : found->second;
}

bool StoreLanes::MayBegin(const StoreLane& name, const Lane& lane) const {
  if (lane.waiting.empty() || under_way_ >= limits_.of_all) return false;
  if (UnderWayOf(name.namespace_name) >= limits_.of_a_namespace) return false;
  return lane.under_way < (under_way_ < limits_.crowded ? limits_.of_a_lane : 1);
}

StoreLanes::Work StoreLanes::Begin(const StoreLane& name, Lane& lane) {
  Work work = std::move(lane.waiting.front());
  lane.waiting.pop_front();
  ++lane.under_way;
  lane.last_begun = ++begun_;
  ++under_way_;
  ++under_way_of_[name.namespace_name];
  return work;
}

StoreLanes::Lanes::iterator StoreLanes::Next() {
  auto next = lanes_.end();
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {
    if (!MayBegin(lane->first, lane->second)) continue;
    const auto rank = [this](const Lanes::value_type& of) {
      return std::tuple(UnderWayOf(of.first.namespace_name), of.second.under_way,
                        of.second.last_begun);
    };
    if (next == lanes_.end() || rank(*lane) < rank(*next)) next = lane;
  }
  return next;
}

void StoreLanes::Run(const StoreLane& lane, Work work) {
  std::list<Runner> ended;  // joined without the lock
  Runner* runner = nullptr;
  {
    const MonitorLock lock(*monitor_);
    if (closed_) return;
    for (auto one = runners_.begin(); one != runners_.end();) {
      const auto next = std::next(one);
      if (one->ended && one->task != nullptr) ended.splice(ended.end(), runners_, one);
      one = next;
    }
    Lane& of = lanes_[lane];
    of.waiting.push_back(std::move(work));
    if (!MayBegin(lane, of)) return;
    work = Begin(lane, of);
    runner = &runners_.emplace_back();
  }
  std::unique_ptr<Task> task = executor_.Spawn(
      "store", [this, runner, lane, work = std::move(work)] { Serve(runner, lane, work); });
  const MonitorLock lock(*monitor_);
  runner->task = std::move(task);
  monitor_->NotifyAll();
}

void StoreLanes::Serve(Runner* runner, StoreLane lane, Work work) {
  while (work) {
    work();
    work = nullptr;  // what it holds goes without the lock
    const MonitorLock lock(*monitor_);
    const auto done = lanes_.find(lane);
    --done->second.under_way;
    --under_way_;
    const auto of_namespace = under_way_of_.find(lane.namespace_name);
    if (--of_namespace->second == 0) under_way_of_.erase(of_namespace);
    monitor_->NotifyAll();
    if (done->second.under_way == 0 && done->second.waiting.empty()) lanes_.erase(done);
    if (const auto next = Next(); next != lanes_.end()) {
      lane = next->first;
      work = Begin(next->first, next->second);
    } else {
      runner->ended = true;
    }
  }
}

void StoreLanes::StopBeginning() {
  closed_ = true;
  for (auto& [name, lane] : lanes_) lane.waiting.clear();
}

bool StoreLanes::Settle(Instant until) {
  const MonitorLock lock(*monitor_);
  StopBeginning();
  while (under_way_ > 0) {
    if (!monitor_->WaitUntil(until)) return under_way_ == 0;
  }
  return true;
}

void StoreLanes::Close() {
  std::list<Runner> last;
  {
    const MonitorLock lock(*monitor_);
    StopBeginning();
    // Run is about to say who has begun.
    const auto all_known = [this] {
      for (const Runner& runner : runners_) {
        if (runner.task == nullptr) return false;
      }
      return true;
    };
    while (!all_known()) monitor_->Wait();
  }
  for (const Runner& runner : runners_) runner.task->Join();
  const MonitorLock lock(*monitor_);
  last.swap(runners_);
}

}  // namespace lambdadnn
