// SPDX-License-Identifier: Apache-2.0
// What a slice spent, by phase. The task of a role is in exactly one phase at any time, so that the
// wall times of all phases add up to that of the slice; docs/theory.md, section 10, says which work
// belongs to which.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/enum_names.h"

namespace lambdadnn {

enum class Phase {
  kLoad,        // data, model, checkpoint to begin with; opening the store
  kCompute,     // worker: reading a batch, forward, backward, taking over new weights
  kPush,        // until what was put is in the store, and garbage deleted
  kWait,        // for the first object of an iteration to come
  kPull,        // for the rest of them
  kMerge,       // server: adding up gradients
  kUpdate,      // root: mean, checks, clipping, optimizer
  kEvaluate,    // worker: its part of the test set
  kCheckpoint,  // checkpoints, the trained model, the state's digest
};
template <>
inline constexpr auto kEnumNames<Phase> = EnumNameTable(
    "load", "compute", "push", "wait", "pull", "merge", "update", "evaluate", "checkpoint");
inline constexpr size_t kPhaseCount = kEnumNames<Phase>.size();
inline constexpr std::array kWorkerPhases = {Phase::kLoad,      Phase::kCompute, Phase::kPush,
                                             Phase::kWait,      Phase::kPull,    Phase::kEvaluate,
                                             Phase::kCheckpoint};

// Between the begin and the end of the phase: CPU time of the whole process, so that transfers in
// the background count where they happen; `throttled`: how long the CPU quota kept it from running
// (control group, summed over processors; sleeps of the pacer); requests that were answered.
struct PhaseUsage {
  double wall_seconds = 0;
  double cpu_seconds = 0;
  double throttled_seconds = 0;
  int64_t requests = 0;
  friend bool operator==(const PhaseUsage&, const PhaseUsage&) = default;
};

struct PhaseUsages {
  std::array<PhaseUsage, kPhaseCount> phases;

  PhaseUsage& operator[](Phase phase) { return phases[static_cast<size_t>(phase)]; }
  const PhaseUsage& operator[](Phase phase) const { return phases[static_cast<size_t>(phase)]; }
  double WallSeconds() const {
    double sum = 0;
    for (const PhaseUsage& phase : phases) sum += phase.wall_seconds;
    return sum;
  }
  // Of a worker's exchange.
  double ExchangeWallSeconds() const {
    return (*this)[Phase::kPush].wall_seconds + (*this)[Phase::kWait].wall_seconds +
           (*this)[Phase::kPull].wall_seconds;
  }
  // Adds `share` of the seconds, and all requests.
  void Add(const PhaseUsages& other, double share) {
    for (size_t i = 0; i < kPhaseCount; ++i) {
      phases[i].wall_seconds += share * other.phases[i].wall_seconds;
      phases[i].cpu_seconds += share * other.phases[i].cpu_seconds;
      phases[i].throttled_seconds += share * other.phases[i].throttled_seconds;
      phases[i].requests += other.phases[i].requests;
    }
  }
  friend bool operator==(const PhaseUsages&, const PhaseUsages&) = default;
};

}  // namespace lambdadnn
