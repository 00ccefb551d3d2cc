// SPDX-License-Identifier: Apache-2.0
// The capacity that the functions of a job take of a shared platform, and the order of jobs. A
// started job (status.startTime) reserves what its plan needs, or the functions that measure its
// profile; a job that is not started holds nothing. The oldest waiting job is the next: no later
// one overtakes it, however little it needs, so that small jobs do not starve a large one. Pure.
#pragma once

#include <optional>
#include <string>

#include "common/plan/workload.h"
#include "operator/api/job.h"
#include "operator/api/reason.h"

namespace lambdadnn {

struct Reservation {
  double memory_mib = 0;
  double milli_cpu = 0;
  friend bool operator==(const Reservation&, const Reservation&) = default;
};
Reservation operator+(const Reservation& a, const Reservation& b);
// Neither more memory nor more CPU; in `within`, 0 = no limit.
bool FitsWithin(const Reservation& reservation, const Reservation& within);
// Of all functions of a plan.
Reservation ReservationOf(const Plan& plan, const Platform& platform);
// Of the functions that the job has while it is started: its plan's, else those of profiling.
Reservation ReservationOf(const Job& job, const Platform& platform);
// "1536 MiB", "1536 MiB and 2000 mCPU": what `capacity` limits.
std::string DescribeReservation(const Reservation& reservation, const Reservation& capacity);

// The queue as one job sees it.
struct QueueView {
  // False: no capacity is configured or known, and jobs start without waiting.
  bool limited = false;
  // False until jobs and capacity have been read once; no job is started before that.
  bool known = true;
  Reservation capacity;
  Reservation taken;   // by other jobs
  int ahead = 0;       // jobs that wait before this one, ...
  Reservation before;  // ... what they wait for, ...
  int undecided = 0;  // ... and those among them that have only just come, of which that is unknown
  // Only undecided jobs are before this one, and it is new itself: it is decided in a moment.
  bool unsettled = false;
  // The first job that waits before this one; empty when it is of another namespace.
  std::string first;
};

// Whether a job may start with `reservation`, or grow to it, now. Jobs before it come first.
bool HasCapacity(const QueueView& queue, const Reservation& reservation);
// What keeps a job that is not started from starting.
struct CapacityWait {
  Reason reason = Reason::kWaitingForCapacity;  // or kExceedsCapacity: it can never start
  int place = 1;                                // in the queue, from 1
  bool planned = false;                         // else it waits for the functions that profile it
  Reservation needed;
  Reservation free;
  Reservation capacity;
  std::string first;  // as in QueueView
};
// nullopt = it may start, or it is not known yet.
std::optional<CapacityWait> FindCapacityWait(const Job& job, const QueueView& queue,
                                             const Platform& platform);
// As the job's condition Ready.
Condition ConditionOf(const CapacityWait& wait);

}  // namespace lambdadnn
