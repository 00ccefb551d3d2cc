// SPDX-License-Identifier: Apache-2.0
// The order in which jobs get capacity for their functions (fair_share.h), derived from the objects
// of all jobs alone: a new process or leader has the same queue at once. What is between a decision
// and the object that shows it (a reservation) lives in this process alone. Thread-safe.
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
#include "operator/controller/admission/fair_share.h"
#include "operator/controller/admission/job_readings.h"
#include "operator/controller/admission/queue_view.h"
#include "operator/controller/options.h"
#include "operator/kube/object_cache.h"

namespace lambdadnn {

class AdmissionQueue {
 public:
  // All outlive this. `synced`: whether the cache holds every job; null = it does.
  AdmissionQueue(Runtime& runtime, FunctionBackend& backend, const ControllerOptions& options,
                 const ObjectCache& cache, JobReadings& readings, std::function<bool()> synced);

  // As `name` sees it now. Asks the backend for its capacity from time to time.
  QueueView View(const ObjectName& name);
  // Takes `reservation`, for `seconds` as predicted, for a job whose object will say so after the
  // write that is about to happen. False: another job was faster, or is before it.
  bool Reserve(const ObjectName& name, const Reservation& reservation,
               std::optional<double> seconds);
  // The write has happened or failed: the object says it.
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
    ObjectVersion source;
    std::string created;
    Instant first_seen{};
    std::optional<Instant> unsettled_since;  // when its view first was, with so few before it
    int fewest_undecided = 0;
    bool started = false;    // holds `reservation`
    bool waits = false;      // for `reservation`
    bool undecided = false;  // has not said yet whether it waits
    int64_t priority = 0;
    bool measures = false;  // its reservation is that of profiling
    Reservation reservation;
    double predicted_seconds = 0;
    double active_seconds = 0;
    std::optional<WallTime> start_time;  // also of one that has finished
  };
  // The order at one moment.
  struct Order {
    FairQueue queue;
    std::map<ObjectName, size_t> places;
    // Before each place: undecided jobs of the same namespace.
    std::vector<int> undecided;
    Reservation taken;
    Instant made{};
  };

  void Sync();
  void SyncOne(const ObjectName& name);
  void Read(const JobReading& reading, Entry* entry);
  void AskCapacity();
  // `exact`: of this moment; else it may be some milliseconds old where there are many jobs.
  QueueView ViewLocked(const ObjectName& name, bool exact);
  const Order& OrderNow(bool exact);
  // Whether it is less than a moment since the `undecided` jobs before it were more, or since the
  // job's view was first asked for with such jobs before it.
  bool IsUnsettled(const ObjectName& name, int undecided);
  bool Waits(const ObjectName& name, const Entry& entry) const;
  // Its reservation by the capacity of now.
  Reservation NeedOf(const Entry& entry) const;
  std::optional<double> SecondsLeftOf(const Entry& entry) const;
  void MarkChanged() { changed_ = order_changed_ = true; }

  Runtime& runtime_;
  FunctionBackend& backend_;
  const ControllerOptions& options_;
  const ObjectCache& cache_;
  JobReadings& readings_;
  const std::function<bool()> synced_;
  mutable std::mutex mutex_;
  uint64_t seen_ = 0;  // of the cache's changes
  std::map<ObjectName, Entry> entries_;
  std::map<ObjectName, Reservation> reserved_;
  std::map<ObjectName, Instant> backs_off_;
  Reservation capacity_;
  bool capacity_known_ = false;
  Instant capacity_asked_{};
  bool changed_ = false;        // since NextAfterChange
  bool order_changed_ = false;  // since order_ was made
  std::optional<Order> order_;
};

}  // namespace lambdadnn
