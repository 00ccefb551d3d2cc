// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/session/slice_budget.h"

#include <algorithm>

#include "common/plan/sync_policy.h"

namespace lambdadnn {
namespace {

constexpr size_t kWindow = 256;
// Of a slice that has measured nothing yet, and of writing the record.
constexpr double kLeastStopSeconds = 0.1;

}  // namespace

SliceBudget::SliceBudget(Clock& clock, Instant started, double budget_seconds)
    : clock_(clock), started_(started), budget_seconds_(budget_seconds) {}

void SliceBudget::IterationTook(double seconds) {
  if (iterations_.size() < kWindow) {
    iterations_.push_back(seconds);
  } else {
    iterations_[next_] = seconds;
    next_ = (next_ + 1) % kWindow;
  }
}

void SliceBudget::EndWorkTook(double seconds) {
  end_work_seconds_ = std::max(end_work_seconds_, seconds);
}

double SliceBudget::StopSeconds() const {
  double p99 = 0;
  if (!iterations_.empty()) {
    std::vector<double> sorted = iterations_;
    const auto at = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) * 99 / 100);
    std::nth_element(sorted.begin(), at, sorted.end());
    p99 = *at;
  }
  return kLeastStopSeconds +
         SyncPolicy::kStopSafetyFactor * (SyncPolicy::kIterationsToStop * p99 + end_work_seconds_);
}

bool SliceBudget::MustStop() const {
  if (budget_seconds_ <= 0) return false;
  const double used = ToSeconds(clock_.Now() - started_);
  return used + StopSeconds() >= budget_seconds_;
}

}  // namespace lambdadnn
