// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/round_view.h"

#include <algorithm>
#include <cmath>

#include "common/plan/sync_policy.h"
#include "common/plan/test_metrics.h"
#include "operator/controller/planning/planning.h"
#include "operator/planner/extended_model.h"
#include "operator/resources/slice_requests.h"
#include "operator/resources/training_config_builder.h"

namespace lambdadnn {
namespace {

bool IsOutOfMemory(const RoundBreak& broken) { return broken.reason == Reason::kOOMKilled; }

// The memory that the function had, and what it should have needed by the plan.
std::string DescribeOutOfMemory(const JobSnapshot& snapshot, const Role& role) {
  const JobStatus& status = snapshot.job.status;
  const Plan& plan = *status.plan;
  const bool worker = role.kind == RoleKind::kWorker;
  std::string text = role.Name() + " ran out of memory and was killed (OOMKilled): it had " +
                     std::to_string(worker ? plan.memory_mib : plan.server_memory_mib) + " MiB";
  if (worker && status.profile.has_value()) {
    const double needed =
        WorkerMibOf(plan, *status.profile, BuildTrainingLimits(snapshot.job.spec));
    text += ", of which it was to need " + std::to_string(static_cast<int64_t>(std::ceil(needed)));
  }
  std::string field;
  const bool grows = MayGrow(snapshot.job, snapshot.options->platform, worker,
                             worker ? plan.memory_mib : plan.server_memory_mib, &field);
  return text + (grows ? "; the next plan gives more" : "; raise " + field);
}

RoundBreak BreakOfLostFunction(const JobSnapshot& snapshot, const Role& role,
                               const std::string& uid, Instant at) {
  const Observations& observed = *snapshot.observations;
  RoundBreak lost;
  lost.reason = Reason::kFunctionLost;
  lost.at = at;
  lost.message = "the function of " + role.Name() + " is gone";
  const auto found = observed.instances.find(uid);
  if (found != observed.instances.end()) {
    const FunctionInstance& instance = found->second.instance;
    if (!instance.reason.empty()) lost.message += " (" + instance.Why() + ")";
    if (!instance.last_log_line.empty()) lost.message += ": " + instance.last_log_line;
    lost.at = std::min(at, found->second.gone.value_or(at));
    lost.counts = IsOwnMaking(instance.end);
    const auto given_up = snapshot.memo->given_up.find(uid);
    if (given_up != snapshot.memo->given_up.end()) {
      lost.reason = given_up->second.reason;
      lost.message = given_up->second.why;
    }
    if (instance.end == FunctionEnd::kOutOfMemory) {
      lost.reason = Reason::kOOMKilled;
      lost.message = DescribeOutOfMemory(snapshot, role);
      if (!instance.last_log_line.empty()) {
        lost.message += "; its last words: " + instance.last_log_line;
      }
    }
  }
  return lost;
}

std::optional<RoundBreak> BreakOfRecord(const SliceFact& slice) {
  const SliceRecord& record = *slice.record;
  if (record.outcome != SliceOutcome::kFailed) return std::nullopt;
  RoundBreak failed;
  failed.reason = Reason::kSliceFailed;
  failed.message = slice.role.Name() + " failed: " + record.error.message();
  failed.permanent = record.permanent;
  // Stopped by us, or failed because another role failed, which is counted itself.
  failed.counts =
      record.error.code() != StatusCode::kCancelled && record.error.code() != StatusCode::kAborted;
  failed.at = slice.ended.value_or(slice.last_heard);
  return failed;
}

std::optional<RoundBreak> BreakOfSilence(const JobSnapshot& snapshot, const SliceFact& slice) {
  const auto found = snapshot.observations->instances.find(slice.instance_uid);
  if (found == snapshot.observations->instances.end()) return std::nullopt;
  const bool ready = found->second.instance.phase == FunctionPhase::kReady;
  const ControllerOptions& options = *snapshot.options;
  const double limit = ready ? options.ready_silence_seconds : options.silence_seconds;
  const Instant heard = std::max(slice.last_heard, slice.started);
  if (snapshot.now - heard < FromSeconds(limit)) return std::nullopt;
  RoundBreak silent;
  silent.reason = Reason::kFunctionSilent;
  silent.message = "nothing was heard of " + slice.role.Name() + " for " +
                   std::to_string(static_cast<int>(limit)) + " seconds";
  if (!slice.error.ok()) {
    silent.message += " (" + found->second.instance.Name() + ": " + slice.error.message() + ")";
  }
  silent.at = snapshot.now;
  silent.unusable_uid = slice.instance_uid;
  return silent;
}

// The request can never work, or the function runs a slice that this process does not know, or it
// is terminating. In the last two cases another function takes the role, in another round.
RoundBreak BreakOfRefusal(const SliceFact& slice, const Observations& observed) {
  RoundBreak refused;
  refused.reason = Reason::kSliceRefused;
  refused.message = slice.role.Name() + " refused its slice: " + slice.error.message();
  refused.permanent = slice.error.code() == StatusCode::kInvalidArgument ||
                      slice.error.code() == StatusCode::kUnimplemented;
  refused.at = slice.started;
  if (!refused.permanent && !IsGone(observed, slice.instance_uid)) {
    refused.unusable_uid = slice.instance_uid;
  }
  return refused;
}

std::optional<RoundBreak> BreakOfSlice(const JobSnapshot& snapshot, const SliceFact& slice) {
  if (slice.record != nullptr) return BreakOfRecord(slice);
  if (slice.phase == SlicePhase::kRefused) return BreakOfRefusal(slice, *snapshot.observations);
  if (IsGone(*snapshot.observations, slice.instance_uid)) {
    return BreakOfLostFunction(snapshot, slice.role, slice.instance_uid,
                               slice.ended.value_or(slice.last_heard));
  }
  return BreakOfSilence(snapshot, slice);
}

// Permanent failures first, then out of memory (which makes other roles fail as well), then those
// that count, then the rest; among equals the earliest.
bool WorseThan(const RoundBreak& a, const RoundBreak& b) {
  if (a.permanent != b.permanent) return a.permanent;
  if (IsOutOfMemory(a) != IsOutOfMemory(b)) return IsOutOfMemory(a);
  if (a.counts != b.counts) return a.counts;
  return a.at < b.at;
}

SyncPolicy::End EndOf(const SliceRecord& record) {
  return {record.next_iteration, record.outcome == SliceOutcome::kFinished};
}

// All roles have a record and none failed: checks whether the records agree.
void ViewEnd(RoundView* view) {
  const SliceRecord& first = *view->entries.front().slice->record;
  view->next_iteration = EndOf(first).next_iteration;
  view->finished = EndOf(first).finished;
  view->all_ended = true;
  std::string worker_digest;
  for (const RoundView::Entry& entry : view->entries) {
    view->ended_at = std::max(view->ended_at, entry.slice->ended.value_or(entry.slice->started));
    const SliceRecord& record = *entry.slice->record;
    const bool agrees = SyncPolicy::EndOneRound(EndOf(record), EndOf(first));
    bool same_state = true;
    if (entry.role.kind == RoleKind::kWorker && !record.state_digest.empty()) {
      if (worker_digest.empty()) worker_digest = record.state_digest;
      same_state = record.state_digest == worker_digest;
    }
    if (!agrees || !same_state) {
      RoundBreak disagree;
      disagree.reason = Reason::kSlicesDisagree;
      disagree.message = agrees
                             ? "the workers ended with different weights at iteration " +
                                   std::to_string(first.next_iteration)
                             : "the slices did not end at the same iteration: " +
                                   view->entries.front().role.Name() + " at " +
                                   std::to_string(first.next_iteration) + ", " + entry.role.Name() +
                                   " at " + std::to_string(record.next_iteration);
      disagree.counts = !same_state;
      disagree.at = entry.slice->ended.value_or(entry.slice->last_heard);
      view->broken = disagree;
      view->all_ended = view->finished = false;
      return;
    }
    if (record.checkpoint.has_value() && record.checkpoint->iteration == first.next_iteration) {
      view->checkpoint = record.checkpoint;
    }
  }
}

// Between the ends of two iterations lies a step with its exchange, at a slice's begin the loading,
// at an epoch's end an evaluation.
double StallSeconds(const JobSnapshot& snapshot) {
  const ControllerOptions& options = *snapshot.options;
  const Plan& plan = *snapshot.job.status.plan;
  const Prediction& predicted = plan.predicted;
  // How long an iteration takes is not known: as long as a step that is being measured may.
  if (!plan.predicted.known())
    return std::max(options.stall_seconds, options.profile_timeout_seconds);
  const int64_t epochs =
      std::max<int64_t>(1, plan.iterations / std::max<int64_t>(1, plan.iterations_per_epoch));
  const double expected =
      predicted.IterationSeconds() + predicted[Term::kLoad] +
      predicted[Term::kEvaluation] /
          EvaluationsIn(static_cast<double>(epochs), snapshot.job.spec.training.evaluate_every);
  return std::max(options.stall_seconds, options.stall_factor * expected);
}

// Also sees the stall of a round that was stopped for it: its slices only say that they were
// stopped.
void ViewStall(const JobSnapshot& snapshot, RoundView* view) {
  if (view->broken.has_value() && (view->broken->counts || view->broken->permanent)) return;
  const Instant until = view->broken.has_value() ? view->broken->at : snapshot.now;
  Instant since = snapshot.observations->iteration_at;
  for (const RoundView::Entry& entry : view->entries) {
    if (entry.slice != nullptr) since = std::max(since, entry.slice->started);
  }
  const double limit = StallSeconds(snapshot);
  if (until - since < FromSeconds(limit)) return;
  RoundBreak stalled;
  stalled.reason = Reason::kStalled;
  stalled.message = "no iteration ended for " + std::to_string(static_cast<int>(limit)) +
                    " seconds although every function is heard";
  stalled.counts = true;
  // The delay before the next try counts from when the limit was reached, not from now.
  stalled.at = since + FromSeconds(limit);
  view->broken = stalled;
}

// Among PlannedRoles, if it is one of them.
size_t PlaceOf(const Role& role, const ExecutionPlan& plan) {
  const int before = role.kind == RoleKind::kWorker ? 0 : plan.functions;
  return static_cast<size_t>(before + std::max(0, role.rank));
}

}  // namespace

bool IsOwnMaking(FunctionEnd end) {
  return end == FunctionEnd::kOutOfMemory || end == FunctionEnd::kByItself;
}

RoundView ViewRound(const JobSnapshot& snapshot, const Round& round) {
  const Observations& observed = *snapshot.observations;
  const Binding binding(snapshot.job.status.execution);
  RoundView view;
  for (const Role& role : PlannedRoles(*snapshot.job.status.plan)) {
    RoundView::Entry& entry = view.entries.emplace_back();
    entry.role = role;
    if (const BoundFunction* const bound = binding.Find(role); bound != nullptr) {
      entry.attempt = bound->attempt;
      entry.instance_uid = bound->uid;
    }
  }
  for (const auto& [invocation, slice] : observed.slices) {
    if (!InRound(slice, round)) continue;
    const size_t place = PlaceOf(slice.role, *snapshot.job.status.plan);
    if (place >= view.entries.size()) continue;
    RoundView::Entry& entry = view.entries[place];
    if (entry.role == slice.role && entry.attempt == slice.attempt) entry.slice = &slice;
  }
  bool all_have_records = true;
  for (RoundView::Entry& entry : view.entries) {
    std::optional<RoundBreak>& broken = entry.broken;
    if (entry.slice != nullptr) {
      view.any_started = true;
      all_have_records = all_have_records && entry.slice->record != nullptr;
      broken = BreakOfSlice(snapshot, *entry.slice);
    } else {
      all_have_records = false;
      // It may have started its slice, which must not run a second time in this round.
      if (!entry.instance_uid.empty() && IsGone(observed, entry.instance_uid)) {
        broken = BreakOfLostFunction(snapshot, entry.role, entry.instance_uid, snapshot.now);
      }
    }
    if (broken.has_value() && IsOutOfMemory(*broken)) {
      const bool worker = entry.role.kind == RoleKind::kWorker;
      (worker ? view.worker_too_small : view.server_too_small) = true;
    }
    if (broken.has_value() && (!view.broken.has_value() || WorseThan(*broken, *view.broken))) {
      view.broken = broken;
    }
  }
  if (all_have_records && !view.entries.empty() && !view.broken.has_value()) {
    ViewEnd(&view);
  } else if (view.any_started) {
    ViewStall(snapshot, &view);
  }
  return view;
}

}  // namespace lambdadnn
