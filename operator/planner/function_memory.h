// SPDX-License-Identifier: Apache-2.0
// What the extended model takes functions to need of memory, and what is left to a worker for
// samples where its share of the data does not fit (docs/theory.md, section 3).
#pragma once

#include <cstdint>

#include "common/plan/plan.h"
#include "common/plan/sample_memory.h"
#include "common/plan/workload.h"

namespace lambdadnn {

// Resident memory of a server function without shards. Beside it, it holds the weights and
// optimizer state of its group's shards, a copy of both for the checkpoint that it writes, their
// sum where one is written, the new weights that it hands on, and what has arrived of them
// (common/plan/arrivals.h).
inline constexpr double kServerBaseMib = 12.5;
// Copies of the exchanged vector in a worker, none of which is in the profile's resting memory, as
// the model and LibTorch's own gradients are: gradients of two iterations, and the shards in
// flight; when it begins and ends, worker 0 has the first checkpoint and a file of the trained
// model in place of these. As tests/prediction/memory.py finds it: 2.7 to 3.1. Too little costs a
// restart.
inline constexpr double kWorkerVectorCopies = 3;
// Of what is left beside all else, what samples get where the share does not fit: the rest is what
// the allocator may lose between samples that come and go.
inline constexpr double kSamplesPart = 0.9;

// Of one worker, without what the exchange needs.
struct WorkerMemory {
  double training_mib = 0;  // process, batch, vectors
  SampleShare share;
  double share_mib = 0;  // of the share as a whole
  // That must be left for the share; share_mib where samples cannot be read again.
  double least_share_mib = 0;

  double whole_mib() const { return training_mib + share_mib; }
  double least_mib() const { return training_mib + least_share_mib; }
};
WorkerMemory WorkerMemoryOf(const WorkloadProfile& profile, int64_t parameters, double local_batch,
                            int functions, const TrainingLimits& limits);

// ExecutionPlan::sample_memory_mib of a worker of this size which needs `exchange_mib` besides; 0
// as well where it is too small.
int SampleMemoryMib(const WorkerMemory& worker, int memory_mib, double exchange_mib);

// What the planner takes a server of this aggregation to need.
double NeededServerMib(const AggregationPlan& plan, int64_t parameters,
                       const TrainingLimits& limits);

// What a worker needs besides for the exchange: the servers in its function, of the one that has
// most.
double ExchangeMibOfWorker(const AggregationPlan& plan, int64_t parameters,
                           const TrainingLimits& limits);

// What a worker of the plan was taken to need, with the servers in its function.
double WorkerMibOf(const ExecutionPlan& plan, const WorkloadProfile& profile,
                   const TrainingLimits& limits);

}  // namespace lambdadnn
