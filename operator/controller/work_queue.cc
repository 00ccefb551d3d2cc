// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/work_queue.h"

#include <algorithm>

namespace lambdadnn {

WorkQueue::WorkQueue(Runtime& runtime, ControllerMetrics* metrics)
    : runtime_(runtime), metrics_(metrics), monitor_(runtime.executor.NewMonitor()) {}

void WorkQueue::Add(const ObjectName& name) {
  if (metrics_ != nullptr) metrics_->Added();
  AddAt(name, runtime_.clock.Now());
}

void WorkQueue::AddAt(const ObjectName& name, Instant when) {
  const MonitorLock lock(*monitor_);
  const auto [found, is_new] = due_.try_emplace(name, when);
  if (!is_new && when >= found->second) return;
  if (!working_.contains(name)) {
    order_.erase({found->second, name});
    order_.insert({when, name});
  }
  found->second = when;
  monitor_->NotifyAll();
}

std::optional<ObjectName> WorkQueue::Get() {
  const MonitorLock lock(*monitor_);
  while (!closed_) {
    const Instant now = runtime_.clock.Now();
    if (order_.empty()) {
      monitor_->Wait();
      continue;
    }
    const auto [when, name] = *order_.begin();
    if (when > now) {
      monitor_->WaitUntil(when);
      continue;
    }
    order_.erase(order_.begin());
    due_.erase(name);
    working_[name] = now;
    if (metrics_ != nullptr) {
      metrics_->Taken(now - when);
      metrics_->Begun();
    }
    return name;
  }
  return std::nullopt;
}

void WorkQueue::Done(const ObjectName& name) {
  const MonitorLock lock(*monitor_);
  working_.erase(name);
  if (const auto again = due_.find(name); again != due_.end()) order_.insert({again->second, name});
  monitor_->NotifyAll();
}

bool WorkQueue::TryHold(const ObjectName& name) {
  const MonitorLock lock(*monitor_);
  if (!working_.try_emplace(name, runtime_.clock.Now()).second) return false;
  if (const auto due = due_.find(name); due != due_.end()) order_.erase({due->second, name});
  return true;
}

void WorkQueue::Close() {
  const MonitorLock lock(*monitor_);
  closed_ = true;
  monitor_->NotifyAll();
}

size_t WorkQueue::size() const {
  const MonitorLock lock(*monitor_);
  return due_.size() + working_.size();
}

Duration WorkQueue::Behind() const {
  const MonitorLock lock(*monitor_);
  if (order_.empty()) return Duration::zero();
  return std::max(Duration::zero(), runtime_.clock.Now() - order_.begin()->first);
}

bool WorkQueue::closed() const {
  const MonitorLock lock(*monitor_);
  return closed_;
}

void WorkQueue::UpdateMetrics() const {
  if (metrics_ == nullptr) return;
  const MonitorLock lock(*monitor_);
  const Instant now = runtime_.clock.Now();
  size_t depth = 0;
  for (const auto& [when, name] : order_) {
    if (when > now) break;
    ++depth;
  }
  Duration unfinished{0};
  Duration longest{0};
  for (const auto& [name, since] : working_) {
    unfinished += now - since;
    longest = std::max(longest, now - since);
  }
  metrics_->SetQueue(depth, unfinished, longest);
}

}  // namespace lambdadnn
