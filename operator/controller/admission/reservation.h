// SPDX-License-Identifier: Apache-2.0
// What the functions of a job take of a platform that jobs share. A job that is started
// (status.startTime) reserves what its plan needs, or the functions that measure its profile; one
// that is not holds none. Pure.
#pragma once

#include <array>
#include <string>

#include "common/plan/workload.h"
#include "operator/api/job.h"

namespace lambdadnn {

// Sidecars included.
struct Reservation {
  double memory_mib = 0;
  double milli_cpu = 0;
  double functions = 0;
  double gpus = 0;
  friend bool operator==(const Reservation&, const Reservation&) = default;
};
inline constexpr std::array<double Reservation::*, 4> kReserved = {
    &Reservation::memory_mib, &Reservation::milli_cpu, &Reservation::functions, &Reservation::gpus};
Reservation operator+(const Reservation& a, const Reservation& b);
// At least 0 of each.
Reservation operator-(const Reservation& a, const Reservation& b);
// No more of anything; in `within`, 0 = no limit.
bool FitsWithin(const Reservation& reservation, const Reservation& within);
// Of all functions of a plan.
Reservation ReservationOf(const Plan& plan, const Platform& platform);
// Of the functions that the job has while it is started: its plan's, those of profiling, or both
// while it trains unmeasured. The latter are as large as `capacity` of all jobs allows, where it is
// smaller than the platform.
Reservation ReservationOf(const Job& job, const Platform& platform, const Reservation& capacity);
// No more of anything than `limit`; in it, 0 = none.
Reservation AtMost(const Reservation& reservation, const Reservation& limit);
// Whether `a` has more of anything.
bool NeedsMore(const Reservation& a, const Reservation& b);
// "1536 MiB", "1536 MiB, 2000 mCPU and 3 functions": what `capacity` limits.
std::string DescribeReservation(const Reservation& reservation, const Reservation& capacity);

}  // namespace lambdadnn
