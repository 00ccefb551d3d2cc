// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/reservation.h"

#include <algorithm>
#include <cmath>

#include "operator/api/conditions.h"
#include "operator/controller/planning/profile_fit.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

Reservation Of(const Platform& platform, int functions, int memory_mib) {
  return {functions * (memory_mib + platform.sidecar_memory_mib),
          static_cast<double>(functions) * MilliCpuOf(platform, memory_mib)};
}

bool Within(double amount, double limit) { return limit <= 0 || amount <= limit; }

double Left(double capacity, double taken) { return std::max(0.0, capacity - taken); }

std::string Whole(double amount) { return std::to_string(std::llround(amount)); }

}  // namespace

Reservation operator+(const Reservation& a, const Reservation& b) {
  return {a.memory_mib + b.memory_mib, a.milli_cpu + b.milli_cpu};
}

bool FitsWithin(const Reservation& reservation, const Reservation& within) {
  return Within(reservation.memory_mib, within.memory_mib) &&
         Within(reservation.milli_cpu, within.milli_cpu);
}

Reservation ReservationOf(const Plan& plan, const Platform& platform) {
  Reservation reservation = Of(platform, plan.functions, plan.memory_mib);
  if (plan.aggregation.placement == Placement::kWorkers) return reservation;
  return reservation + Of(platform, plan.aggregation.server_functions(), plan.server_memory_mib);
}

Reservation ReservationOf(const Job& job, const Platform& platform) {
  if (job.status.plan.has_value()) return ReservationOf(*job.status.plan, platform);
  const ProfilePlan plan = MakeProfilePlan(job.spec, platform);
  Reservation reservation = Of(platform, plan.functions, plan.memory_mib.front());
  reservation.milli_cpu = MilliCpuOf(platform, plan.memory_mib.front()) +
                          (plan.functions - 1.0) * plan.filler_milli_cpu;
  return reservation;
}

std::string DescribeReservation(const Reservation& reservation, const Reservation& capacity) {
  std::string text;
  if (capacity.memory_mib > 0) text = Whole(reservation.memory_mib) + " MiB";
  if (capacity.milli_cpu <= 0) return text;
  return text + (text.empty() ? "" : " and ") + Whole(reservation.milli_cpu) + " mCPU";
}

bool HasCapacity(const QueueView& queue, const Reservation& reservation) {
  if (!queue.limited) return true;
  return queue.known && queue.undecided == 0 &&
         FitsWithin(queue.taken + queue.before + reservation, queue.capacity);
}

std::optional<CapacityWait> FindCapacityWait(const Job& job, const QueueView& queue,
                                             const Platform& platform) {
  CapacityWait wait;
  wait.needed = ReservationOf(job, platform);
  if (!queue.limited || !queue.known || HasCapacity(queue, wait.needed)) return std::nullopt;
  const bool ever = FitsWithin(wait.needed, queue.capacity);
  wait.reason = ever ? Reason::kWaitingForCapacity : Reason::kExceedsCapacity;
  wait.place = queue.ahead + 1;
  wait.planned = job.status.plan.has_value();
  wait.free = {Left(queue.capacity.memory_mib, queue.taken.memory_mib),
               Left(queue.capacity.milli_cpu, queue.taken.milli_cpu)};
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
