// SPDX-License-Identifier: Apache-2.0
// What iterations of whole runs took, over what the model makes of the rest of a profile: factors
// that earlier jobs have shown (docs/theory.md, section 11). What is measured in parts finds other
// caches and other waits than what a run does at once.
#pragma once

#include "common/plan/plan.h"

namespace lambdadnn {

// 0 = no run has shown it.
struct RunFactors {
  double compute = 0;
  double evaluation = 0;
  // Of the exchange, by its transport and by who serves.
  double alone = 0;  // of one function that serves itself
  double store = 0;
  double store_workers = 0;
  double direct = 0;
  double direct_workers = 0;

  double& ExchangeOf(const AggregationPlan& plan);
  double ExchangeOf(const AggregationPlan& plan) const;
  // Of compute and exchanges, as multipliers; at most 1.
  double Least() const;
  friend bool operator==(const RunFactors&, const RunFactors&) = default;
};

// Each of them.
inline constexpr double RunFactors::* kRunFactors[] = {
    &RunFactors::compute,        &RunFactors::evaluation,    &RunFactors::alone,
    &RunFactors::store,          &RunFactors::store_workers, &RunFactors::direct,
    &RunFactors::direct_workers,
};

// As a multiplier: 1 where no run has shown it.
inline double OrOne(double factor) { return factor > 0 ? factor : 1; }

}  // namespace lambdadnn
