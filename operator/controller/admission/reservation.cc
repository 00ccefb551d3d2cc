// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/reservation.h"

#include <algorithm>
#include <cmath>

#include "operator/controller/planning/profile_fit.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

Reservation Of(const Platform& platform, int functions, int memory_mib) {
  return {functions * (memory_mib + platform.sidecar_memory_mib),
          static_cast<double>(functions) * MilliCpuOf(platform, memory_mib)};
}

bool Within(double amount, double limit) { return limit <= 0 || amount <= limit; }

std::string Whole(double amount) { return std::to_string(std::llround(amount)); }

}  // namespace

Reservation operator+(const Reservation& a, const Reservation& b) {
  return {a.memory_mib + b.memory_mib, a.milli_cpu + b.milli_cpu};
}

Reservation operator-(const Reservation& a, const Reservation& b) {
  return {std::max(0.0, a.memory_mib - b.memory_mib), std::max(0.0, a.milli_cpu - b.milli_cpu)};
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

}  // namespace lambdadnn
