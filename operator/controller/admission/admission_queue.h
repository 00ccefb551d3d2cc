// SPDX-License-Identifier: Apache-2.0
// The order in which jobs get capacity for their functions, worked out from the objects of all jobs
// and from nothing else that lasts: a new process or leader has the same queue at once. Jobs that
// wait stand by creation time, then namespace and name. What is between a decision and the object
// that shows it (a reservation) lives in this process alone. Thread-safe.
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

  // As `name` sees it now. May ask the backend once in a while how much there is.
  QueueView View(const ObjectName& name);
  // Takes `reservation` for a job whose object will say so after the write that is about to happen.
  // False: somebody was faster, or is before it.
  bool Reserve(const ObjectName& name, const Reservation& reservation);
  // The write has happened or failed: the object says it.
  void Settle(const ObjectName& name);
  // A job whose start failed backs off until then: whoever is next may try.
  void BackOff(const ObjectName& name, Instant until);
  // Those who wait and may start now, in order (the first few of them), whenever anything has
  // changed since the last call.
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
  // Whether it is less than a moment since the `undecided` jobs before it were more, or since the
  // job's view was first asked for with such jobs before it.
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
