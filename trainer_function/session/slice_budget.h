// SPDX-License-Identifier: Apache-2.0
// Decides when a slice must begin to stop so that its record is written within the time budget
// (seconds of wall time).
//
// Stopping takes SyncPolicy::kIterationsToStop more iterations, a checkpoint and the work at an
// epoch's end. Each is taken at the p99 of what this slice has measured, and all of it times
// SyncPolicy::kStopSafetyFactor. Not thread-safe.
#pragma once

#include <vector>

#include "common/base/clock.h"

namespace lambdadnn {

class SliceBudget {
 public:
  // `budget_seconds` <= 0: no limit.
  SliceBudget(Clock& clock, Instant started, double budget_seconds);

  void IterationTook(double seconds);
  // A checkpoint, an evaluation: what else may lie between the decision and the end.
  void EndWorkTook(double seconds);
  bool MustStop() const;
  // Estimated seconds from the decision to stop until the record is out.
  double StopSeconds() const;

 private:
  Clock& clock_;
  const Instant started_;
  const double budget_seconds_;
  std::vector<double> iterations_;  // the newest kWindow
  size_t next_ = 0;
  double end_work_seconds_ = 0;  // largest seen
};

}  // namespace lambdadnn
