// SPDX-License-Identifier: Apache-2.0
// What the functions of a job take of a platform that jobs share, and who is before whom. A job
// that is started (status.startTime) holds the room of its plan, or of the functions that measure
// its profile; one that is not holds none. The oldest job that waits is the next: a later one never
// overtakes it, however little it needs, so that a large job is not kept waiting by small ones.
// Pure.
#pragma once

#include <optional>
#include <string>

#include "common/plan/workload.h"
#include "operator/api/job.h"

namespace lambdadnn {

struct Room {
  double memory_mib = 0;
  double milli_cpu = 0;
  friend bool operator==(const Room&, const Room&) = default;
};
Room operator+(const Room& a, const Room& b);
// Neither more memory nor more CPU; in `within`, 0 = no limit.
bool FitsWithin(const Room& room, const Room& within);
// Of all functions of a plan.
Room RoomOf(const Plan& plan, const Platform& platform);
// Of the functions that the job has while it is started: its plan's, else those of profiling.
Room RoomOf(const Job& job, const Platform& platform);
// "1536 MiB", "1536 MiB and 2000 mCPU": what `capacity` limits.
std::string DescribeRoom(const Room& room, const Room& capacity);

// The queue as one job sees it.
struct QueueView {
  // Nobody has said how much there is: whoever wants functions asks for them.
  bool limited = false;
  // Not everything has been asked yet that counts; nobody starts meanwhile.
  bool known = true;
  Room capacity;
  Room taken;         // by other jobs
  int ahead = 0;      // jobs that wait before this one, ...
  Room before;        // ... the room that they wait for, ...
  int undecided = 0;  // ... and those among them that have only just come, of which that is unknown
  // Only of those is it unknown, and this one has just come as well: in a moment it will be known.
  bool unsettled = false;
  // The first of them; empty when it is of another namespace.
  std::string first;
};

// Whether a job that takes `room` may start, or grow to it, now: it does not take what those before
// it wait for.
bool HasRoom(const QueueView& queue, const Room& room);
// Why a job that is not started does not start, as its condition Ready; nullopt = it may.
std::optional<Condition> WaitingCondition(const Job& job, const QueueView& queue,
                                          const Platform& platform);

}  // namespace lambdadnn
