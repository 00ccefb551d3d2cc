// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/reservation.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "operator/controller/planning/profile_fit.h"
#include "operator/controller/planning/unmeasured_plan.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

// With a sidecar in each.
Reservation Of(const Platform& platform, int functions, double memory_mib, double milli_cpu,
               int gpu) {
  const double sidecar_mib =
      std::max(platform.sidecar_memory_mib, platform.machine_sidecar_memory_mib);
  return {functions * (memory_mib + sidecar_mib),
          functions * (milli_cpu + platform.machine_sidecar_milli_cpu),
          static_cast<double>(functions), static_cast<double>(functions) * gpu};
}

Reservation Of(const Platform& platform, int functions, int memory_mib, int gpu) {
  return Of(platform, functions, memory_mib, MilliCpuOf(platform, memory_mib), gpu);
}

// Of the functions that measure.
Reservation OfProfile(const Platform& platform, const ProfilePlan& plan) {
  const int largest = plan.memory_mib.front();
  return Of(platform, 1, largest, plan.gpu) +
         Of(platform, plan.functions - 1, largest, plan.filler_milli_cpu, plan.gpu);
}

bool Within(double amount, double limit) { return limit <= 0 || amount <= limit; }

std::string Whole(double amount) { return std::to_string(std::llround(amount)); }

}  // namespace

Reservation operator+(const Reservation& a, const Reservation& b) {
  Reservation sum;
  for (const auto each : kReserved) sum.*each = a.*each + b.*each;
  return sum;
}

Reservation operator-(const Reservation& a, const Reservation& b) {
  Reservation difference;
  for (const auto each : kReserved) difference.*each = std::max(0.0, a.*each - b.*each);
  return difference;
}

bool FitsWithin(const Reservation& reservation, const Reservation& within) {
  return std::all_of(kReserved.begin(), kReserved.end(),
                     [&](auto each) { return Within(reservation.*each, within.*each); });
}

Reservation ReservationOf(const Plan& plan, const Platform& platform) {
  Reservation reservation = Of(platform, plan.functions, plan.memory_mib, plan.gpu);
  if (plan.aggregation.placement == Placement::kWorkers) return reservation;
  return reservation + Of(platform, plan.aggregation.server_functions(), plan.server_memory_mib, 0);
}

Reservation AtMost(const Reservation& reservation, const Reservation& limit) {
  Reservation bounded = reservation;
  for (const auto each : kReserved) {
    if (limit.*each > 0) bounded.*each = std::min(bounded.*each, limit.*each);
  }
  return bounded;
}

bool NeedsMore(const Reservation& a, const Reservation& b) {
  return std::any_of(kReserved.begin(), kReserved.end(),
                     [&](auto each) { return a.*each > b.*each; });
}

Reservation ReservationOf(const Job& job, const Platform& platform, const Reservation& capacity) {
  if (TrainsUnmeasured(job)) {
    const ProfilePlan beside = ProfilePlanBeside(job.spec, platform);
    return AtMost(ReservationOf(*job.status.plan, platform) + OfProfile(platform, beside),
                  capacity);
  }
  if (job.status.plan.has_value() && !LeavesUnmeasured(job)) {
    return ReservationOf(*job.status.plan, platform);
  }
  return AtMost(OfProfile(platform, MakeProfilePlan(job.spec, platform)), capacity);
}

std::string DescribeReservation(const Reservation& reservation, const Reservation& capacity) {
  std::vector<std::string> amounts;
  if (capacity.memory_mib > 0) amounts.push_back(Whole(reservation.memory_mib) + " MiB");
  if (capacity.milli_cpu > 0) amounts.push_back(Whole(reservation.milli_cpu) + " mCPU");
  if (capacity.functions > 0) {
    amounts.push_back(CountOf(std::llround(reservation.functions), "function"));
  }
  if (capacity.gpus > 0 && reservation.gpus > 0) {
    amounts.push_back(CountOf(std::llround(reservation.gpus), "GPU"));
  }
  if (amounts.size() < 2) return Join(amounts, "");
  const std::string last = std::move(amounts.back());
  amounts.pop_back();
  return Join(amounts, ", ") + " and " + last;
}

}  // namespace lambdadnn
