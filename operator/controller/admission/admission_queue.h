// SPDX-License-Identifier: Apache-2.0
// The order in which jobs get capacity for their functions. It follows from the objects of all
// jobs, so that a new process or leader has the same queue at once. Waiting jobs are ordered by
// creation time, then namespace and name. Only reservations between a decision and its write are in
// this process alone. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/backends/function_backend.h"
#include "operator/controller/admission/reservation.h"
#include "operator/controller/options.h"
#include "operator/kube/object_cache.h"

namespace lambdadnn {

class AdmissionQueue {
 public:
  // All outlive this. `synced`: whether the cache holds every job; null = it does.
  AdmissionQueue(Runtime& runtime, FunctionBackend& backend, const ControllerOptions& options,
                 const ObjectCache& cache, std::function<bool()> synced);

  // As `name` sees it now. Asks the backend for its capacity from time to time.
  QueueView View(const ObjectName& name);
  // Reserves for a job before the write that records it. False: another job has taken the capacity,
  // or comes first.
  bool Reserve(const ObjectName& name, const Reservation& reservation);
  // The write has succeeded or failed: from now on the object counts.
  void Settle(const ObjectName& name);
  // A job whose start failed backs off until then, so that the next job may try.
  void BackOff(const ObjectName& name, Instant until);
  // The first few jobs that wait and may start now, in order; empty when nothing has changed since
  // the last call.
  std::vector<ObjectName> NextAfterChange();
  size_t size() const;  // of what is remembered

 private:
  // What the object of one job says.
  struct Entry {
    std::shared_ptr<const Json> source;
    std::string uid;
    std::string created;
    Instant first_seen{};
    std::optional<Instant> unsettled_since;  // when its view first was, with so few before it
    int fewest_undecided = 0;
    bool started = false;    // holds `reservation`
    bool waits = false;      // for `reservation`
    bool undecided = false;  // has not said yet whether it waits
    Reservation reservation;
  };

  void Sync();
  void SyncOne(const ObjectName& name);
  void Read(Entry* entry);
  void AskCapacity();
  QueueView ViewLocked(const ObjectName& name);
  // Whether the number of `undecided` jobs before this one has just dropped, or its view was first
  // asked for a moment ago.
  bool IsUnsettled(const ObjectName& name, int undecided);
  bool Waits(const ObjectName& name, const Entry& entry) const;
  bool Before(const ObjectName& a, const ObjectName& b) const;

  Runtime& runtime_;
  FunctionBackend& backend_;
  const ControllerOptions& options_;
  const ObjectCache& cache_;
  const std::function<bool()> synced_;
  mutable std::mutex mutex_;
  uint64_t seen_ = 0;  // of the cache's changes
  std::map<ObjectName, Entry> entries_;
  std::map<ObjectName, Reservation> reserved_;
  std::map<ObjectName, Instant> backs_off_;
  Reservation capacity_;
  bool capacity_known_ = false;
  Instant capacity_asked_{};
  bool changed_ = false;
};

}  // namespace lambdadnn
