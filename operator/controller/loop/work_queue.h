// SPDX-License-Identifier: Apache-2.0
// The names that workers take, now or at a later time. A name is in the queue once and is processed
// by one worker at a time; added while it is processed, it is queued again afterwards. While there
// are names that were never processed they get three turns of four, so that a burst of new jobs
// gets a first status soon and running jobs go on. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "common/base/runtime.h"
#include "operator/controller/loop/controller_metrics.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

class WorkQueue {
 public:
  // `metrics` outlives it; null = nothing is counted.
  explicit WorkQueue(Runtime& runtime, ControllerMetrics* metrics = nullptr);

  void Add(const ObjectName& name);
  // Due no later than `when`; an earlier time is kept.
  void AddAt(const ObjectName& name, Instant when);
  // Blocks; nullopt once the queue is closed. Every name got must be given to Done.
  std::optional<ObjectName> Get();
  void Done(const ObjectName& name);
  // Keeps workers from the name until Done; false while one works on it.
  bool TryHold(const ObjectName& name);
  void Close();
  bool closed() const;
  size_t size() const;  // names that it knows
  // How long the name that is to come next has been due; zero when its time is still to come.
  Duration Behind() const;
  // Sets the gauges.
  void UpdateMetrics() const;

 private:
  Runtime& runtime_;
  ControllerMetrics* const metrics_;
  std::unique_ptr<Monitor> monitor_;
  std::map<ObjectName, Instant> due_;
  using Order = std::set<std::pair<Instant, ObjectName>>;
  // The set that the name belongs into, and the one whose turn it is; with the monitor.
  Order& OrderOf(const ObjectName& name) { return known_.contains(name) ? order_ : new_order_; }
  Order& Next(Instant now);

  // Of the names in due_ that no worker has.
  Order order_;
  Order new_order_;
  std::set<ObjectName> known_;             // worked on before
  int new_turns_ = 0;                      // one after the other
  std::map<ObjectName, Instant> working_;  // since when
  bool closed_ = false;
};

}  // namespace lambdadnn
