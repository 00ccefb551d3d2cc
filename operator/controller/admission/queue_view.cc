// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/queue_view.h"

#include <algorithm>

#include "operator/api/conditions.h"

namespace lambdadnn {

std::optional<double> SecondsLeft(double predicted_seconds, double active_seconds) {
  constexpr double kOverdue = 0.1;
  if (predicted_seconds <= 0) return std::nullopt;
  return std::max(predicted_seconds - active_seconds, predicted_seconds * kOverdue);
}

double PredictedSeconds(const Job& job) {
  return job.status.plan.has_value() ? job.status.plan->predicted.seconds : 0;
}

bool HasCapacity(const QueueView& queue, const Reservation& reservation,
                 std::optional<double> seconds) {
  if (!queue.limited) return true;
  return queue.known && queue.undecided == 0 &&
         MayStart(queue.turn, reservation, seconds, queue.capacity);
}

std::optional<CapacityWait> FindCapacityWait(const Job& job, const QueueView& queue,
                                             const Platform& platform) {
  CapacityWait wait;
  wait.needed = ReservationOf(job, platform, queue.capacity);
  const auto seconds = SecondsLeft(PredictedSeconds(job), job.status.execution.active_seconds);
  if (!queue.limited || !queue.known || HasCapacity(queue, wait.needed, seconds)) {
    return std::nullopt;
  }
  const bool ever = FitsWithin(wait.needed, queue.capacity);
  wait.reason = ever ? Reason::kWaitingForCapacity : Reason::kExceedsCapacity;
  wait.place = queue.place();
  wait.planned = job.status.plan.has_value();
  wait.free = queue.capacity - queue.taken;
  wait.capacity = queue.capacity;
  wait.first = queue.first;
  return wait;
}

Condition ConditionOf(const CapacityWait& wait) {
  const std::string capacity = DescribeReservation(wait.capacity, wait.capacity);
  const std::string needs = std::string(wait.planned ? "the plan needs " : "profiling needs ") +
                            DescribeReservation(wait.needed, wait.capacity);
  if (wait.reason == Reason::kExceedsCapacity) {
    return MakeCondition(kConditionReady, false, wait.reason,
                         needs + ", more than the " + capacity +
                             " that all jobs share; lower spec.functions or the objective, or give "
                             "the platform more");
  }
  std::string message =
      "waits for capacity, place " + std::to_string(wait.place) + " in the queue: " + needs + ", " +
      DescribeReservation(wait.free, wait.capacity) + " of " + capacity + " are free";
  if (wait.place > 1) {
    message += wait.first.empty() ? ", a job of another namespace is next"
                                  : ", " + wait.first + " is next";
  }
  return MakeCondition(kConditionReady, false, wait.reason, message);
}

}  // namespace lambdadnn
