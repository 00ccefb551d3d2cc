// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/loop/work_queue.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// Turns of new names in a row while others are due.
constexpr int kNewTurns = 3;

}  // namespace

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
    Order& order = OrderOf(name);
    order.erase({found->second, name});
    order.insert({when, name});
  }
  found->second = when;
  monitor_->NotifyAll();
}

WorkQueue::Order& WorkQueue::Next(Instant now) {
  if (order_.empty() || new_order_.empty()) return order_.empty() ? new_order_ : order_;
  const Instant due = order_.begin()->first;
  const Instant new_due = new_order_.begin()->first;
  const bool both = std::max(due, new_due) <= now;
  const bool is_new = both ? new_turns_ < kNewTurns : new_due < due;
  return is_new ? new_order_ : order_;
}

std::optional<ObjectName> WorkQueue::Get() {
  const MonitorLock lock(*monitor_);
  while (!closed_) {
    const Instant now = runtime_.clock.Now();
    Order& order = Next(now);
    if (order.empty()) {
      monitor_->Wait();
      continue;
    }
    const auto [when, name] = *order.begin();
    if (when > now) {
      monitor_->WaitUntil(when);
      continue;
    }
    new_turns_ = &order == &new_order_ ? new_turns_ + 1 : 0;
    order.erase(order.begin());
    known_.insert(name);
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
  if (const auto again = due_.find(name); again != due_.end()) {
    order_.insert({again->second, name});
  } else {
    known_.erase(name);
  }
  monitor_->NotifyAll();
}

bool WorkQueue::TryHold(const ObjectName& name) {
  const MonitorLock lock(*monitor_);
  if (!working_.try_emplace(name, runtime_.clock.Now()).second) return false;
  if (const auto due = due_.find(name); due != due_.end()) {
    OrderOf(name).erase({due->second, name});
  }
  known_.insert(name);
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
  const Instant now = runtime_.clock.Now();
  Duration behind = Duration::zero();
  for (const Order* order : {&order_, &new_order_}) {
    if (!order->empty()) behind = std::max(behind, now - order->begin()->first);
  }
  return behind;
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
  for (const Order* order : {&order_, &new_order_}) {
    for (const auto& [when, name] : *order) {
      if (when > now) break;
      ++depth;
    }
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
