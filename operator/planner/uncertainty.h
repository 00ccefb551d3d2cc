// SPDX-License-Identifier: Apache-2.0
// How far runs are from what the extended model predicts of them. Pure. The shares are fitted to
// recorded runs (tests/prediction; docs/theory.md, section 3).
#pragma once

#include <array>

#include "common/plan/prediction.h"
#include "common/plan/workload.h"

namespace lambdadnn {

// Standard deviations as shares of what is predicted.
struct DeviationShares {
  // Of each term; of compute and communication, that of an iteration as a whole.
  std::array<double, kTermCount> terms = {};

  double operator[](Term term) const { return terms[static_cast<size_t>(term)]; }
};

// Of plans whose workers have this share of a core, or whole ones (1). What the profile says of its
// own measurements counts as well.
DeviationShares DeviationSharesOf(const WorkloadProfile& profile, double core_share);

// Fills the deviations of a prediction of so many iterations. Errors of different terms are
// independent; the error of a term is the same in each iteration. `deviation` grows with every
// term, so that what is at most a prediction's terms has at most its deviation.
void AddDeviations(const DeviationShares& shares, double iterations, Prediction* prediction);

// The share of an iteration as a whole that a prediction of so many iterations was given; 0 = none.
double IterationShareOf(const Prediction& prediction, double iterations);

// The standard deviations that are added to an expected time before it is compared with the
// deadline: for the objective's confidence; 0 without a deadline.
double DeadlineDeviations(const Objective& objective);

}  // namespace lambdadnn
