// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/written_decision.h"

#include <algorithm>

#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

bool WrittenDecision::falls_back() const {
  // The first plan of a job that resumes from another one begins with that one's incarnation.
  return before.status.plan.has_value() && decision.execution.has_value() &&
         decision.execution->incarnation > before.status.execution.incarnation;
}

bool WrittenDecision::rejoins() const {
  if (!decision.execution.has_value() || falls_back()) return false;
  const std::vector<BoundFunction>& functions = decision.execution->functions;
  return std::any_of(functions.begin(), functions.end(), [&](const BoundFunction& function) {
    return function.attempt > 1 && std::find(before.status.execution.functions.begin(),
                                             before.status.execution.functions.end(),
                                             function) == before.status.execution.functions.end();
  });
}

bool WrittenDecision::has_other_plan() const {
  return decision.plan.has_value() && (!before.status.plan.has_value() ||
                                       decision.plan->revision != before.status.plan->revision);
}

void ForgetOutdated(const WrittenDecision& written, Instant now, Observations* observed,
                    Memo* memo) {
  const WriteDecision& decision = written.decision;
  // They were for the profile, and are large beside all else that is kept of a job.
  if (decision.profile.has_value()) {
    memo->kept_profile.reset();
    memo->start_record = {};
  }
  if (decision.plan.has_value() || decision.execution.has_value()) {
    memo->start_since.reset();
    if (!decision.start_failed) {
      memo->start_attempts = 0;
      memo->start_again_at.reset();
    }
    // A new incarnation repeats iterations.
    if (written.falls_back()) {
      observed->iteration = decision.execution->first_iteration;
      memo->rejoined_at = -1;
    }
    if (written.rejoins()) memo->rejoined_at = observed->iteration;
    observed->iteration_at = now;
    // A round that only now begins has no records yet.
    const bool begun = CurrentRound(written.before) == CurrentRound(written.after) &&
                       !written.before.status.execution.functions.empty();
    if (!begun) memo->records_read = CurrentRound(written.after);
  }
  if (!decision.start_time.has_value()) return;
  if (decision.start_time->empty()) {
    memo->admission.reset();
    memo->dataset_refused = OkStatus();
    memo->module_refused = OkStatus();
  } else {
    memo->start_again_at.reset();
  }
  memo->records_read.reset();
  memo->checkpoint_looked_up.reset();
}

}  // namespace lambdadnn
