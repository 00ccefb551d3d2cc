// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/drift.h"

#include <algorithm>
#include <cmath>

namespace lambdadnn {

Drift FindDrift(const DriftFacts& facts) {
  if (facts.iterations < kLeastDriftIterations || facts.stretches < kLeastDriftStretches) {
    return Drift::kNone;
  }
  const bool rests =
      facts.seconds_since_replan.value_or(kDriftCoolDownSeconds) < kDriftCoolDownSeconds;
  if (facts.replans >= kMostDriftReplans || rests) return Drift::kNone;
  const RemainingTime& remaining = facts.remaining;
  if (remaining.seconds <= facts.switch_seconds) return Drift::kNone;
  if (facts.seconds_allowed &&
      remaining.seconds - facts.quantile * remaining.deviation > *facts.seconds_allowed) {
    return Drift::kLate;
  }
  const double differs = std::abs(facts.iteration_factor - 1);
  const double within = std::max(kLeastDrift, facts.quantile * facts.iteration_deviation);
  return differs > within ? Drift::kDiffers : Drift::kNone;
}

bool IsInTime(const DriftFacts& facts) {
  const RemainingTime& remaining = facts.remaining;
  return !facts.seconds_allowed ||
         remaining.seconds + facts.quantile * remaining.deviation <= *facts.seconds_allowed;
}

bool IsLookDue(int64_t looked_at, int64_t iteration, int64_t left) {
  return iteration - looked_at >= std::max(kLeastDriftIterations, left / 10);
}

bool IsWorthSwitching(double rank, double rank_of_current) {
  return rank <= (1 - kLeastSaving) * rank_of_current;
}

}  // namespace lambdadnn
