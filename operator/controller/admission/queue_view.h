// SPDX-License-Identifier: Apache-2.0
// The queue for capacity as one job sees it, and what that means for the job. Pure.
#pragma once

#include <optional>
#include <string>

#include "operator/api/job.h"
#include "operator/api/reason.h"
#include "operator/controller/admission/fair_share.h"
#include "operator/controller/admission/reservation.h"

namespace lambdadnn {

struct QueueView {
  // False: no capacity is configured or known, and jobs start without waiting.
  bool limited = false;
  // False until jobs and capacity have been read once; no job is started before that.
  bool known = true;
  Reservation capacity;
  Reservation taken;  // by other jobs that are started
  QueueTurn turn;
  // Jobs of its namespace before it that are so new that it is not known whether they wait.
  int undecided = 0;
  // Only undecided jobs are before this one, and it is new itself: it is decided in a moment.
  bool unsettled = false;
  // The first job that waits before this one; empty when it is of another namespace.
  std::string first;

  // From 1.
  int place() const { return static_cast<int>(turn.ahead) + 1; }
};

// Seconds that a job is predicted to run from now on, after `active_seconds`; nullopt without a
// prediction (0). One that takes longer than predicted is taken to need a tenth of that more.
std::optional<double> SecondsLeft(double predicted_seconds, double active_seconds);
// Of its plan; 0 without one.
double PredictedSeconds(const Job& job);
// Whether a job may start with `reservation`, or grow to it, now. Jobs before it come first, unless
// it is in the way of none of them; `seconds`: that it is predicted to run.
bool HasCapacity(const QueueView& queue, const Reservation& reservation,
                 std::optional<double> seconds);
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
