// SPDX-License-Identifier: Apache-2.0
// How long an iteration takes where functions have a fraction of a core, by running some iterations
// of one plan in virtual time: docs/theory.md, section 3, has the reasons.
//
// Linux gives a control group its CPU quota anew once a period, and stops it for the rest of the
// period when that is used up: a quota of 0.25 cores is 25 ms in each 100 ms, then a stall of 75
// ms, not a core four times as slow. What is left over is kept up to the burst. So a worker that
// waits for others has quota for computing at the speed of a core afterwards, while one that is
// late has none: the same work is waiting for some and stalling for others, and no formula of means
// tells how much of an iteration each is.
//
// Where workers serve, a worker and the servers in its function have one quota: what others' shards
// take of it its own step waits for, and others wait for a server whose worker has used it up.
//
// Pure and deterministic; allocates nothing.
#pragma once

#include "common/plan/exchange_cpu.h"
#include "common/plan/plan.h"

namespace lambdadnn {

// Seconds.
struct IterationWork {
  double step_cpu = 0;  // of a worker's own samples
  ExchangeCpu exchange = {};
  // From the end of a push until the object is pulled; an iteration has one of these for each level
  // of servers, and one for the weights.
  double hop = 0;
  double straggler = 0;  // how much longer the slowest worker's hand-over takes than the mean
  // Of the questions for an object that is not there yet (common/plan/poll_schedule.h); none
  // without seconds.
  PollCost miss = {};
};

struct CpuLimits {
  // Cores of a function; at least 1: no quota.
  double worker_share = 1;
  double server_share = 1;
  // Of the quota's period, and for how many seconds of quota more than one period's are kept.
  double period_seconds = 0.1;
  double burst_seconds = 0;
  double cores = 0;  // that all functions share; 0 = each has its own
};

struct SimulatedIteration {
  double seconds = 0;
  double compute_seconds = 0;  // of these in the workers' steps, stalls included, mean over workers
};

// Of many workers, servers and groups of shards a few are simulated, each for as many of them.
SimulatedIteration SimulateIteration(const AggregationPlan& plan, const IterationWork& work,
                                     const CpuLimits& limits);

}  // namespace lambdadnn
