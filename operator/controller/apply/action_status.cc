// SPDX-License-Identifier: Apache-2.0
// Actions on the API object.
#include "common/base/utf8.h"
#include "operator/api/conditions.h"
#include "operator/api/job_id.h"
#include "operator/controller/apply/action_executor.h"
#include "operator/controller/apply/event_objects.h"
#include "operator/controller/decide/status.h"
#include "operator/controller/decide/written_decision.h"
#include "operator/kinds/serverless_training_job.h"

namespace lambdadnn {
namespace {

// What a user wrote, for a message.
std::string Quoted(const std::string& text) {
  constexpr size_t kMost = 80;
  return "'" + RepairUtf8(text.substr(0, kMost)) + "'";
}

}  // namespace

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const AddFinalizer&) {
  const std::string brought = AnnotatedJobId(pass->snapshot.job);
  const std::string id = JobIdOf(pass->snapshot.job);
  LDNN_RETURN_IF_ERROR(writer_.WriteFinalizers(pass, true));
  if (!brought.empty() && brought != id && dependencies_.record_event) {
    dependencies_.record_event(
        MakeEvent(pass->snapshot.job,
                  MakeCondition(kConditionAccepted, true, Reason::kPlaceNotUsed,
                                "the annotation " + std::string(kJobIdAnnotation) + " is " + id +
                                    " again: " + Quoted(brought) + " is not the id of this job")));
  }
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const RemoveFinalizer&) {
  LDNN_RETURN_IF_ERROR(writer_.WriteFinalizers(pass, false));
  return Next::kGoOn;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const WriteDecision& action) {
  // The history of earlier processes is read before this one's first save replaces it.
  if (action.execution.has_value()) LoadHistory(pass);
  loader_.Refresh(pass);
  JobMemory& memory = *pass->memory;
  const Job before = pass->snapshot.job;
  if (action.reservation.has_value() &&
      !queue_.Reserve(pass->name, *action.reservation, action.seconds)) {
    return Next::kDecideAgain;
  }
  const WrittenDecision decision{before, pass->snapshot.job, action};
  const bool restarts = decision.falls_back() || decision.rejoins();
  if (restarts) ++pass->snapshot.meter.usage.restarts;
  const Status written = writer_.Write(pass, ComputeStatus(pass->snapshot, action));
  queue_.Settle(pass->name);
  LDNN_RETURN_IF_ERROR(written);
  if (restarts) {
    ++memory.meter.usage.restarts;
    memory.history.problems.push_back(action.why);
  }
  const double time = memory.Time(pass->snapshot.now);
  if (action.profile_measured) {
    memory.history.profiling_seconds = time;
    memory.memo.profile_starts = action.profile_starts;
  } else if (action.measured_on) {
    memory.memo.profile_kept_on = action.measured_on;
  }
  if (action.keep_profile) KeepProfile(pass, *action.profile, *action.measured_on);
  if (decision.has_other_plan()) {
    memory.history.planned_at = time;
    memory.history.functions_ready_at = 0;
  }
  ForgetOutdated(decision, pass->snapshot.now, &memory.observations, &memory.memo);
  // They are for the prefix alone.
  if (JobIdOf(before) != JobIdOf(pass->snapshot.job)) memory.issued.reset();
  // A job that is only starting has no history.
  const bool has_history = IsStarted(before) && (action.plan || action.execution);
  if (has_history) SaveHistory(pass);
  const bool replanned = decision.has_other_plan() && before.status.plan.has_value();
  if (decision.falls_back() || replanned) DropExchange(pass, *CurrentRound(before));
  if (!action.start_time.has_value()) return Next::kDecideAgain;
  memory.active_since = {};
  loader_.Refresh(pass);
  // What happened before the start took none of the job's time.
  if (memory.history.functions_ready_at == 0) {
    memory.history.planned_at = memory.Time(pass->snapshot.now);
  }
  if (action.start_time->empty()) SaveHistory(pass);
  // When many jobs are created at once, the plan of each is shown before functions of any start.
  return Next::kYield;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const NoteDriftLook& action) {
  pass->memory->memo.drift_look = action.look;
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
