// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/work_queue.h"

#include <algorithm>

namespace lambdadnn {

WorkQueue::WorkQueue(Runtime& runtime)
    : runtime_(runtime), monitor_(runtime.executor.NewMonitor()) {}

void WorkQueue::Add(const ObjectName& name) { AddAt(name, runtime_.clock.Now()); }

void WorkQueue::AddAt(const ObjectName& name, Instant when) {
  const MonitorLock lock(*monitor_);
  const auto [found, is_new] = due_.try_emplace(name, when);
  if (!is_new) found->second = std::min(found->second, when);
  monitor_->NotifyAll();
}

std::optional<ObjectName> WorkQueue::Get() {
  const MonitorLock lock(*monitor_);
  while (!closed_) {
    const Instant now = runtime_.clock.Now();
    auto next = due_.end();
    for (auto it = due_.begin(); it != due_.end(); ++it) {
      if (working_.contains(it->first)) continue;
      if (next == due_.end() || it->second < next->second) next = it;
    }
    if (next == due_.end()) {
      monitor_->Wait();
    } else if (next->second > now) {
      monitor_->WaitUntil(next->second);
    } else {
      const ObjectName name = next->first;
      due_.erase(next);
      working_.insert(name);
      return name;
    }
  }
  return std::nullopt;
}

void WorkQueue::Done(const ObjectName& name) {
  const MonitorLock lock(*monitor_);
  working_.erase(name);
  monitor_->NotifyAll();
}

void WorkQueue::Close() {
  const MonitorLock lock(*monitor_);
  closed_ = true;
  monitor_->NotifyAll();
}

bool WorkQueue::closed() const {
  const MonitorLock lock(*monitor_);
  return closed_;
}

}  // namespace lambdadnn
