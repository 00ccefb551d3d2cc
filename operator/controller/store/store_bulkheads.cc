// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/store/store_bulkheads.h"

#include <tuple>
#include <utility>

namespace lambdadnn {

StoreBulkheads::StoreBulkheads(Executor& executor, const Limits& limits)
    : executor_(executor), limits_(limits), monitor_(executor.NewMonitor()) {}

StoreBulkheads::~StoreBulkheads() { Close(); }

int StoreBulkheads::UnderWayOf(const std::string& namespace_name) const {
  const auto found = under_way_of_.find(namespace_name);
  return found == under_way_of_.end() ? 0 : found->second;
}

bool StoreBulkheads::MayBegin(const StoreBulkhead& name, const Queue& bulkhead) const {
  if (bulkhead.waiting.empty() || under_way_ >= limits_.of_all) return false;
  if (UnderWayOf(name.namespace_name) >= limits_.of_a_namespace) return false;
  return bulkhead.under_way < (under_way_ < limits_.crowded ? limits_.of_a_store : 1);
}

StoreBulkheads::Work StoreBulkheads::Begin(const StoreBulkhead& name, Queue& bulkhead) {
  Work work = std::move(bulkhead.waiting.front());
  bulkhead.waiting.pop_front();
  ++bulkhead.under_way;
  bulkhead.last_begun = ++begun_;
  ++under_way_;
  ++under_way_of_[name.namespace_name];
  return work;
}

StoreBulkheads::Queues::iterator StoreBulkheads::Next() {
  auto next = queues_.end();
  for (auto bulkhead = queues_.begin(); bulkhead != queues_.end(); ++bulkhead) {
    if (!MayBegin(bulkhead->first, bulkhead->second)) continue;
    const auto rank = [this](const Queues::value_type& of) {
      return std::tuple(UnderWayOf(of.first.namespace_name), of.second.under_way,
                        of.second.last_begun);
    };
    if (next == queues_.end() || rank(*bulkhead) < rank(*next)) next = bulkhead;
  }
  return next;
}

void StoreBulkheads::Run(const StoreBulkhead& bulkhead, Work work) {
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
    Queue& of = queues_[bulkhead];
    of.waiting.push_back(std::move(work));
    if (!MayBegin(bulkhead, of)) return;
    work = Begin(bulkhead, of);
    runner = &runners_.emplace_back();
  }
  std::unique_ptr<Task> task = executor_.Spawn(
      "store", [this, runner, bulkhead, work = std::move(work)] { Serve(runner, bulkhead, work); });
  const MonitorLock lock(*monitor_);
  runner->task = std::move(task);
  monitor_->NotifyAll();
}

void StoreBulkheads::Serve(Runner* runner, StoreBulkhead bulkhead, Work work) {
  while (work) {
    work();
    work = nullptr;  // what it holds goes without the lock
    const MonitorLock lock(*monitor_);
    const auto done = queues_.find(bulkhead);
    --done->second.under_way;
    --under_way_;
    const auto of_namespace = under_way_of_.find(bulkhead.namespace_name);
    if (--of_namespace->second == 0) under_way_of_.erase(of_namespace);
    monitor_->NotifyAll();
    if (done->second.under_way == 0 && done->second.waiting.empty()) queues_.erase(done);
    if (const auto next = Next(); next != queues_.end()) {
      bulkhead = next->first;
      work = Begin(next->first, next->second);
    } else {
      runner->ended = true;
    }
  }
}

void StoreBulkheads::StopBeginning() {
  closed_ = true;
  for (auto& [name, bulkhead] : queues_) bulkhead.waiting.clear();
}

bool StoreBulkheads::Settle(Instant until) {
  const MonitorLock lock(*monitor_);
  StopBeginning();
  while (under_way_ > 0) {
    if (!monitor_->WaitUntil(until)) return under_way_ == 0;
  }
  return true;
}

void StoreBulkheads::Close() {
  std::list<Runner> last;
  {
    const MonitorLock lock(*monitor_);
    StopBeginning();
    // Run has not told yet that it began.
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
