// SPDX-License-Identifier: Apache-2.0
// What a seed stands for: the job, its plan, and the faults that will strike it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/protocol/slice.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/sim_functions.h"
#include "tests/simulation/sim_kube.h"
#include "tests/simulation/sim_object_store.h"

namespace lambdadnn::simulation {

enum class DisturbanceKind {
  kKillFunction,
  kCutOffFunction,  // from the operator, not from the store
  kCutOffAll,       // every function: together they go on where nobody sees them
  kSlowFunction,
  kCutStream,
  kKillController,
  kSecondLeader,  // takes over while the first lives on; where leaders are elected: one is frozen
  kCutOffLeader,  // from the API server; what it sends hangs
  kStopLeader,    // in order: the Lease is released
  kDeleteLease,
  kSuspend,  // and resume a little later
};

struct Disturbance {
  DisturbanceKind kind = DisturbanceKind::kKillFunction;
  double at_seconds = 0;
  double seconds = 0;  // how long it lasts, where it lasts
  uint64_t choice = 0;
};

// The user wants another plan for the rest of the job.
struct PlanChange {
  double at_seconds = 0;
  // Suspends first, and changes the aggregation as well; otherwise the objective alone.
  bool while_suspended = false;
  double suspended_seconds = 0;
  AggregationPlan aggregation;
  int functions() const { return aggregation.workers(); }
};

// The host of everything but the API server loses power: what it had not synced is lost as well.
struct PowerCut {
  double at_seconds = 0;
  // Not then, but at this many changes to the disk after that: in the middle of a write. 0 = then.
  int64_t changes = 0;
};

// Small models of several shards.
inline constexpr int64_t kSimulatedBlockElements = 16;

struct Scenario {
  uint64_t seed = 0;
  Plan plan;
  TrainingConfig training;
  int64_t test_samples = 0;
  double slice_seconds = 4;
  double checkpoint_interval_seconds = 2;
  int keep_checkpoints = 2;
  double tick_seconds = 1;       // of the controller
  double delete_at_seconds = 0;  // the user deletes the running job; 0 = never
  double compute_seconds_per_sample = 0.004;
  double compute_seconds = 0.02;

  StoreTiming store;
  PlatformTiming platform;
  KubeTiming kube;
  // The controller speaks HTTP to the API server (every fourth seed).
  bool kube_over_http = false;
  // The operator's replicas that elect their leader by the Lease (every sixth seed). 0 = there is
  // one leader by the world's say, and at times another beside it.
  int replicas = 0;
  FaultRates rates;
  std::vector<CrashAppointment> appointments;
  std::vector<Disturbance> disturbances;
  std::vector<PlanChange> plan_changes;  // in order of time
  // The store is the production file store, on a disk that can lose power.
  bool store_is_files = false;
  std::vector<PowerCut> power_cuts;  // in order of time
  // Of a job whose objective changes: only the planner can fit the layers to another number.
  bool planner_chooses_layers = false;

  // The job trains while it is measured, and its plan is the planner's.
  bool while_training = false;

  std::string Brief() const;
};

Scenario MakeScenario(uint64_t seed);

}  // namespace lambdadnn::simulation
