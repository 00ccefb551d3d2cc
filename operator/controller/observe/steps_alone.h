// SPDX-License-Identifier: Apache-2.0
// How long the iterations of a job take that trains before it is measured, while no function
// measures beside them: its plan stays or is replaced by what these show (decide_replan.cc). One
// per job; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/phase_usage.h"

namespace lambdadnn {

// What a slice had spent when that iteration was done, as it told.
struct ToldPhases {
  int64_t iteration = 0;
  PhaseUsages phases;
};

class StepsAlone {
 public:
  // Nothing counts while a function measures beside the training, nor across that.
  void ObserveMeasuring(bool measures, Instant now);
  // A line of a worker's slice. What it spent since its line before counts; `evaluated`: with an
  // evaluation, which it tells of.
  void ObserveLine(const std::string& invocation, const ToldPhases& told, bool evaluated);

  // When functions that measure were last seen to be gone, or never were; absent: there are some.
  const std::optional<Instant>& since() const { return since_; }
  // Sums over all workers.
  int64_t iterations() const { return iterations_; }
  double compute_seconds() const { return compute_; }
  double exchange_seconds() const { return exchange_; }
  // Of one worker's part of an evaluation; 0: none was seen.
  double SecondsPerEvaluation() const {
    return evaluations_ > 0 ? evaluation_ / static_cast<double>(evaluations_) : 0;
  }

 private:
  std::optional<Instant> since_;
  std::map<std::string, ToldPhases> last_;  // by invocation
  int64_t iterations_ = 0;
  double compute_ = 0;
  double exchange_ = 0;
  int64_t evaluations_ = 0;
  double evaluation_ = 0;
};

}  // namespace lambdadnn
