// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/steps_alone.h"

namespace lambdadnn {

void StepsAlone::ObserveMeasuring(bool measures, Instant now) {
  if (measures) {
    *this = {};
  } else if (!since_.has_value()) {
    since_ = now;
  }
}

void StepsAlone::ObserveLine(const std::string& invocation, const ToldPhases& told,
                             bool evaluated) {
  if (!since_.has_value()) return;
  const auto [last, is_first] = last_.try_emplace(invocation, told);
  const int64_t done = told.iteration - last->second.iteration;
  if (is_first || done < 0) return;
  const auto spent = [&](Phase phase) {
    return told.phases[phase].wall_seconds - last->second.phases[phase].wall_seconds;
  };
  iterations_ += done;
  compute_ += spent(Phase::kCompute);
  exchange_ += told.phases.ExchangeWallSeconds() - last->second.phases.ExchangeWallSeconds();
  // A line that comes again tells of nothing.
  if (evaluated && spent(Phase::kEvaluate) > 0) {
    ++evaluations_;
    evaluation_ += spent(Phase::kEvaluate);
  }
  last->second = told;
}

}  // namespace lambdadnn
