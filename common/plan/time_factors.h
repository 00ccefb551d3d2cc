// SPDX-License-Identifier: Apache-2.0
// By how much a run differs from its profile: what the times of each kind are multiplied by.
#pragma once

namespace lambdadnn {

struct TimeFactors {
  double compute = 1;     // of steps and evaluations
  double exchange = 1;    // of what goes through the store, the servers' work included
  double start = 1;       // of cold starts and loading
  double evaluation = 1;  // of evaluations, beside `compute`
  friend bool operator==(const TimeFactors&, const TimeFactors&) = default;
};

}  // namespace lambdadnn
