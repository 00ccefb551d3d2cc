// SPDX-License-Identifier: Apache-2.0
// When a run that differs from its plan's prediction is a reason to look for another plan, and when
// another plan is worth its switch. Pure; figures in, verdict out. docs/theory.md, section 11.
#pragma once

#include <cstdint>
#include <optional>

#include "operator/controller/planning/online_estimate.h"

namespace lambdadnn {

// Before these the estimate of a plan revision is no reason for anything.
inline constexpr int64_t kLeastDriftIterations = 20;
inline constexpr int64_t kLeastDriftStretches = 3;
// Changes of plan for this reason in a job's life: each costs a cold start, and a run that needs
// more of them is not predictable.
inline constexpr int kMostDriftReplans = 3;
// Between two of them.
inline constexpr double kDriftCoolDownSeconds = 60;
// Of what remains, that another plan must save, its switch included.
inline constexpr double kLeastSaving = 0.1;
// An iteration that takes no more than this share longer or shorter is as predicted.
inline constexpr double kLeastDrift = 0.05;

struct DriftFacts {
  int64_t iterations = 0;                      // done under the plan in force
  int64_t stretches = 0;                       // that were learnt from
  int replans = 0;                             // of this kind so far
  std::optional<double> seconds_since_replan;  // absent: there was none
  double iteration_factor = 1;
  double iteration_deviation = 0;
  RemainingTime remaining;
  std::optional<double> seconds_allowed;  // until the deadline
  double switch_seconds = 0;              // until another plan's first iteration
  // Of the normal distribution: what is claimed with the objective's confidence is so many standard
  // deviations away.
  double quantile = 0;
};

enum class Drift {
  kNone,    // or too early, or too late, to tell
  kLate,    // the deadline will be missed
  kDiffers  // it will not, but the run differs from what the plan was chosen for
};
Drift FindDrift(const DriftFacts& facts);
// No sign of kLate is left: the deadline will be met.
bool IsInTime(const DriftFacts& facts);

// Whether to look for a plan again after a look at `looked_at` found none, with so many iterations
// done and left: the sooner, the less is left.
bool IsLookDue(int64_t looked_at, int64_t iteration, int64_t left);
// `rank`: what the objective minimises, of the rest of the job with its switch.
bool IsWorthSwitching(double rank, double rank_of_current);

}  // namespace lambdadnn
