// SPDX-License-Identifier: Apache-2.0
// Actions on the API object.
#include "operator/controller/apply/action_executor.h"
#include "operator/controller/decide/status.h"
#include "operator/controller/planning/profile_fit.h"
#include "operator/kinds/serverless_training_job.h"

namespace lambdadnn {

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const AddFinalizer&) {
  LDNN_RETURN_IF_ERROR(writer_.WriteFinalizers(pass, true));
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const RemoveFinalizer&) {
  LDNN_RETURN_IF_ERROR(writer_.WriteFinalizers(pass, false));
  return Next::kGoOn;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const WriteDecision& action) {
  // What earlier processes saw, before this one's first save replaces it.
  if (action.execution.has_value()) LoadHistory(pass);
  loader_.Refresh(pass);
  JobMemory& memory = *pass->memory;
  const Job before = pass->snapshot.job;
  // A first plan may begin with another job's incarnation.
  if (action.reservation.has_value() && !queue_.Reserve(pass->name, *action.reservation)) {
    return Next::kDecideAgain;
  }
  const bool falls_back = before.status.plan.has_value() && action.execution.has_value() &&
                          action.execution->incarnation > before.status.execution.incarnation;
  if (falls_back) ++pass->snapshot.meter.usage.restarts;
  const Status written = writer_.Write(pass, ComputeStatus(pass->snapshot, action));
  queue_.Settle(pass->name);
  LDNN_RETURN_IF_ERROR(written);
  if (falls_back) {
    ++memory.meter.usage.restarts;
    memory.history.problems.push_back(action.why);
  }
  const double time = memory.Time(pass->snapshot.now);
  if (action.profile_measured) memory.history.profiling_seconds = time;
  if (action.keep_profile && dependencies_.profile_cache != nullptr) {
    dependencies_.profile_cache->Keep(ProfileSignature(before.spec, options_.platform),
                                      *action.profile);
  }
  const bool other_plan =
      action.plan.has_value() &&
      (!before.status.plan.has_value() || action.plan->revision != before.status.plan->revision);
  if (other_plan) {
    memory.history.planned_at = time;
    memory.history.functions_ready_at = 0;
  }
  if (action.plan.has_value() || action.execution.has_value()) {
    memory.facts.start_since.reset();
    if (!action.start_failed) {
      memory.facts.start_attempts = 0;
      memory.facts.start_again_at.reset();
    }
    // A new incarnation repeats iterations.
    if (falls_back) memory.facts.iteration = action.execution->first_iteration;
    memory.facts.iteration_at = pass->snapshot.now;
    // Nothing of a round that only now begins can have left a record.
    const bool begun = CurrentRound(before) == CurrentRound(pass->snapshot.job) &&
                       !before.status.execution.functions.empty();
    if (!begun) memory.facts.records_read = CurrentRound(pass->snapshot.job);
    // Of a job that is only starting there is none.
    if (IsStarted(before)) SaveHistory(pass);
  }
  const bool replanned = other_plan && before.status.plan.has_value();
  if (falls_back || replanned) DropExchange(pass, *CurrentRound(before));
  if (action.start_time.has_value()) {
    if (action.start_time->empty()) {
      memory.facts.admission.reset();
    } else {
      memory.facts.start_again_at.reset();
    }
    memory.facts.records_read.reset();
    memory.facts.checkpoint_looked_up.reset();
    memory.active_since = {};
    loader_.Refresh(pass);
    // What was before the start took none of the job's time.
    if (memory.history.functions_ready_at == 0) {
      memory.history.planned_at = memory.Time(pass->snapshot.now);
    }
    if (action.start_time->empty()) SaveHistory(pass);
    // Where many jobs come at once, what becomes of each is told before the functions of any start.
    return Next::kYield;
  }
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const DeleteJobObject&) {
  const Status deleted = dependencies_.kube.Delete(ServerlessTrainingJobType(), pass->name,
                                                   pass->snapshot.job.metadata.uid);
  writer_.ReadBack(pass);
  if (deleted.code() == StatusCode::kNotFound) return Next::kGoOn;
  LDNN_RETURN_IF_ERROR(deleted);
  return Next::kGoOn;
}

}  // namespace lambdadnn
