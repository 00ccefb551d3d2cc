// SPDX-License-Identifier: Apache-2.0
// Runs the plan: starts its functions, then one round of slices after the other.
#include <algorithm>
#include <cmath>
#include <utility>

#include "operator/controller/decide/await_functions.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/fingerprint_check.h"
#include "operator/controller/decide/profile_source.h"
#include "operator/controller/decide/round_view.h"
#include "operator/controller/planning/planning.h"
#include "operator/controller/planning/unmeasured_plan.h"
#include "operator/controller/store/job_place.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

bool OfAnotherRound(const SliceFact& slice, const Round& round) { return !InRound(slice, round); }

double FailureDelay(const ControllerOptions& options, int64_t failures) {
  if (failures <= 0) return 0;
  const double doubled =
      options.failure_delay_seconds * std::pow(2.0, static_cast<double>(failures - 1));
  return std::min(doubled, options.max_failure_delay_seconds);
}

// Functions measure the model beside the round, which has begun.
bool MeasuresBeside(const Job& job) {
  return TrainsUnmeasured(job) && !job.status.execution.functions.empty();
}

// Those that measure beside the round are as good as in it.
bool OfNeither(const SliceFact& slice, const Round& round) {
  return slice.role.kind != RoleKind::kProfile && !InRound(slice, round);
}

// Slices of other rounds, which have ended.
void ForgetOthers(const JobSnapshot& snapshot, bool (*other)(const SliceFact&, const Round&),
                  const Round& round, std::vector<Action>* actions) {
  for (const auto& [invocation, slice] : snapshot.observations->slices) {
    if (other(slice, round)) actions->push_back(ForgetSlice{invocation});
  }
}

// Notes a function size that ran out of memory, if the job lets the next plan give more. True = it
// was not noted before.
bool LearnOutOfMemory(const JobSnapshot& snapshot, const RoundView& view, ExecutionStatus* next) {
  const Plan& plan = *snapshot.job.status.plan;
  bool news = false;
  const auto learn = [&](bool workers, int memory_mib, int* known) {
    std::string field;
    if (memory_mib <= *known) return;
    if (!MayGrow(snapshot.job, snapshot.options->platform, workers, memory_mib, &field)) return;
    *known = memory_mib;
    news = true;
  };
  if (view.worker_too_small) learn(true, plan.memory_mib, &next->too_small_worker_mib);
  if (view.server_too_small) learn(false, plan.server_memory_mib, &next->too_small_server_mib);
  return news;
}

// Functions that ran out of memory and were killed before they were ready.
RoundView ViewOutOfMemory(const Observations& observed, int plan_revision) {
  RoundView killed;
  for (const auto& [uid, fact] : observed.instances) {
    const std::string& group = fact.instance.group;
    if (!EndedEarly(fact) || fact.instance.end != FunctionEnd::kOutOfMemory) continue;
    killed.worker_too_small = killed.worker_too_small || group == WorkersGroupName(plan_revision);
    killed.server_too_small = killed.server_too_small || group == ServersGroupName(plan_revision);
  }
  return killed;
}

std::vector<Action> DecideFunctions(const JobSnapshot& snapshot) {
  const FunctionStarts starts = ViewStarts(*snapshot.observations, PlannedNeeds(snapshot));
  if (starts.all_ready) return {};
  ExecutionStatus next = snapshot.job.status.execution;
  const RoundView killed =
      ViewOutOfMemory(*snapshot.observations, snapshot.job.status.plan->revision);
  if (killed.worker_too_small && TrainsUnmeasured(snapshot.job)) {
    return {LeaveUnmeasuredPlan(next, Reason::kOOMKilled,
                                "the function that was to train before the model was measured ran "
                                "out of memory")};
  }
  if (LearnOutOfMemory(snapshot, killed, &next)) {
    WriteDecision grow;
    grow.why = "functions ran out of memory and were killed before they were ready";
    grow.execution = next;
    grow.conditions.push_back(MakeCondition(kConditionDegraded, true, Reason::kOOMKilled,
                                            grow.why + "; the next plan gives more"));
    return {grow};
  }
  return AwaitFunctions(snapshot, starts, EnsurePlannedGroups{});
}

// An instance for every role, in order; empty unless all of them are ready.
std::vector<BoundFunction> Bind(const JobSnapshot& snapshot) {
  const Plan& plan = *snapshot.job.status.plan;
  if (!ViewStarts(*snapshot.observations, PlannedNeeds(snapshot)).all_ready) return {};
  const auto workers = ReadyInstances(*snapshot.observations, WorkersGroupName(plan.revision));
  const auto servers = ReadyInstances(*snapshot.observations, ServersGroupName(plan.revision));
  auto next_worker = workers.begin();
  auto next_server = servers.begin();
  std::vector<BoundFunction> functions;
  for (const Role& role : PlannedRoles(plan)) {
    const bool works = role.kind == RoleKind::kWorker;
    auto& next = works ? next_worker : next_server;
    if (next == (works ? workers.end() : servers.end())) return {};
    functions.push_back({role.Name(), 1, (*next++)->instance.uid});
  }
  return functions;
}

// Binds `functions`, and pins what they compute with. How often they write checkpoints is one for
// all roles of a round, and so decided here.
void WriteBinding(const JobSnapshot& snapshot, std::vector<BoundFunction> functions,
                  const FingerprintCheck& check, WriteDecision* write) {
  write->execution->functions = std::move(functions);
  Plan plan = check.pinned;
  plan.checkpoint_every = CheckpointEveryOf(snapshot.job.spec, plan);
  if (plan != *snapshot.job.status.plan) write->plan = std::move(plan);
}

// The start fails: the next functions may land on nodes of one kind, or the user selects them.
std::vector<Action> ReleaseDiffering(const JobSnapshot& snapshot, const std::string& difference) {
  const Condition differ = MakeCondition(
      kConditionDegraded, true, Reason::kNumericsDiffer,
      difference +
          ": the bits would differ; suspend the job and let its functions run on "
          "nodes of one kind (spec.podTemplate.spec.nodeSelector), or change spec.objective: "
          "another plan pins anew");
  const Condition* const told = FindCondition(snapshot.job, kConditionDegraded);
  if (told != nullptr && told->status == differ.status && told->reason == differ.reason &&
      told->message == differ.message) {
    return {GiveUpStart(snapshot)};
  }
  WriteDecision tell;
  tell.why = "numerics differ";
  tell.conditions.push_back(differ);
  return {tell};
}

// The binding is written before any slice starts: the next leader joins exactly these functions, or
// gives up the whole round.
std::vector<Action> DecideBinding(const JobSnapshot& snapshot) {
  if (auto waits = AwaitReservation(snapshot); waits.has_value()) return *waits;
  std::vector<Action> functions = DecideFunctions(snapshot);
  if (!functions.empty()) return functions;
  const std::vector<BoundFunction> bound = Bind(snapshot);
  if (bound.empty()) return {};
  const FingerprintCheck check = CheckFingerprints(snapshot, bound);
  if (!check.answered) return check.questions;
  if (!check.difference.empty()) return ReleaseDiffering(snapshot, check.difference);
  if (auto drop = DropOutdatedProfile(snapshot, bound); drop.has_value()) return {*drop};
  WriteDecision bind;
  bind.why = "bind";
  bind.execution = snapshot.job.status.execution;
  WriteBinding(snapshot, bound, check, &bind);
  return {bind};
}

// Starts the slices of a bound round, or joins those that run.
std::vector<Action> JoinRound(const JobSnapshot& snapshot, const RoundView& view) {
  std::vector<Action> actions;
  for (const RoundView::Entry& entry : view.entries) {
    if (entry.slice == nullptr) {
      if (entry.instance_uid.empty() || IsGone(*snapshot.observations, entry.instance_uid))
        continue;
      actions.push_back(StartTrainingSlice{entry.role, entry.instance_uid});
    } else if (const SliceFact& slice = *entry.slice; slice.record == nullptr) {
      if (slice.phase == SlicePhase::kLost && !IsGone(*snapshot.observations, slice.instance_uid) &&
          snapshot.now - slice.last_attach >= FromSeconds(1)) {
        actions.push_back(StartTrainingSlice{entry.role, slice.instance_uid});
      }
    }
  }
  return actions;
}

// Every role of the round is at work, as what is measured beside it is to find it.
bool HasTrained(const RoundView& view) {
  return std::all_of(view.entries.begin(), view.entries.end(), [](const RoundView::Entry& entry) {
    return entry.slice != nullptr && entry.slice->last.has_value();
  });
}

bool AllJoined(const JobSnapshot& snapshot, const RoundView& view) {
  return std::all_of(view.entries.begin(), view.entries.end(), [&](const RoundView::Entry& entry) {
    return entry.slice != nullptr || IsGone(*snapshot.observations, entry.instance_uid);
  });
}

// Goes back to an older checkpoint, because the store returned damaged bytes for the one that the
// round began with. This happens at most once for each checkpoint.
bool LeavesDamaged(const JobSnapshot& snapshot, const Round& round, const ExecutionStatus& next) {
  return FoundDataLoss(*snapshot.observations, round) &&
         next.first_iteration < round.first_iteration;
}

std::vector<Action> DecideFallBack(const JobSnapshot& snapshot, const Round& round,
                                   const RoundView& view, const RoundBreak& broken) {
  if (!broken.unusable_uid.empty()) {
    return {DeleteFunction{broken.unusable_uid, broken.message, broken.reason}};
  }
  std::vector<Action> stops = StopSlices(snapshot, StopManner::kAtOnce, InRound, round);
  for (const auto& [invocation, slice] : snapshot.observations->slices) {
    if (InRound(slice, round) && MayRun(slice, *snapshot.observations)) return stops;
  }
  const Observations& observed = *snapshot.observations;
  const Memo& memo = *snapshot.memo;
  if (memo.checkpoint_looked_up != round) {
    return {LookUpCheckpoint{round, FoundDataLoss(observed, round)}};
  }
  // Functions that the store refused are replaced by some with the current credentials, and those
  // that were started when it had another address by some that know its own.
  const bool other_store = observed.credentials_changed || observed.store_moved;
  if (other_store && AnyLiveInstance(observed)) return {DeleteAllGroups{}};

  ExecutionStatus next = FallenBack(snapshot);
  // What the plan was to hold, and how long it may take, is known once the model is measured.
  const bool beyond = view.worker_too_small || broken.reason == Reason::kStalled;
  if (beyond && TrainsUnmeasured(snapshot.job)) {
    const Reason reason = view.worker_too_small ? Reason::kOOMKilled : broken.reason;
    return {LeaveUnmeasuredPlan(next, reason, broken.message)};
  }
  // Running out of memory is bounded by the largest function size, not by backoffLimit.
  const bool grows = LearnOutOfMemory(snapshot, view, &next);
  const bool counts = broken.counts && !grows;
  if (counts && !other_store && !LeavesDamaged(snapshot, round, next)) {
    ++next.failures;
    if (next.failures > snapshot.job.spec.backoff_limit) {
      return {FailJob(Reason::kBackoffLimitExceeded,
                      "the job failed " + std::to_string(next.failures) +
                          " times without a newer checkpoint; the last time: " + broken.message)};
    }
    const Duration delay = FromSeconds(FailureDelay(*snapshot.options, next.failures));
    if (snapshot.now - broken.at < delay) return {};
  }
  WriteDecision write;
  write.why = "fall back: " + std::string(ReasonText(broken.reason)) + ": " + broken.message;
  write.execution = next;
  HoldPlanFromQuiesce(snapshot, &write);
  write.conditions.push_back(MakeCondition(
      kConditionDegraded, true, broken.reason,
      broken.message + "; going on from iteration " + std::to_string(next.first_iteration)));
  return {write};
}

std::vector<Action> DecideNextRound(const JobSnapshot& snapshot, const Round& round,
                                    const RoundView& view) {
  std::optional<CheckpointReference> checkpoint = view.checkpoint;
  const Memo& memo = *snapshot.memo;
  if (!checkpoint.has_value()) {
    if (memo.checkpoint_looked_up != round) return {LookUpCheckpoint{round}};
    if (!memo.newest_checkpoint.has_value() ||
        memo.newest_checkpoint->plan_revision != round.plan_revision ||
        memo.newest_checkpoint->iteration != view.next_iteration) {
      RoundBreak missing;
      missing.reason = Reason::kCheckpointMissing;
      missing.message = "the slices stopped at iteration " + std::to_string(view.next_iteration) +
                        " without a complete checkpoint there";
      missing.counts = true;
      missing.at = view.ended_at;
      return DecideFallBack(snapshot, round, view, missing);
    }
    checkpoint = memo.newest_checkpoint;
  }
  const std::vector<BoundFunction> bound = Bind(snapshot);
  const FingerprintCheck check = CheckFingerprints(snapshot, bound);
  if (!check.answered) return check.questions;
  WriteDecision write;
  write.why = "next slices from iteration " + std::to_string(view.next_iteration);
  write.execution = snapshot.job.status.execution;
  if (view.next_iteration > write.execution->first_iteration) write.execution->failures = 0;
  write.execution->first_iteration = view.next_iteration;
  write.execution->start_checkpoint = CheckpointToJson(*checkpoint);
  write.execution->functions.clear();
  // Workers that differ are released by DecideBinding, when no function is bound.
  if (check.difference.empty()) WriteBinding(snapshot, bound, check, &write);
  if (view.next_iteration == round.first_iteration) {
    // No iteration was done: without another incarnation the round would find its own records.
    ++write.execution->incarnation;
  }
  return {write};
}

// What worker 0 wrote beside the last model, if it did.
std::optional<BestModelStatus> BestModelOf(const JobSpec& spec, const SliceRecord& record,
                                           const std::string& results) {
  const auto iteration = record.metrics.find(kBestIterationMetric);
  const auto value = record.metrics.find(kBestValueMetric);
  if (!spec.training.keep_best || iteration == record.metrics.end() ||
      value == record.metrics.end()) {
    return std::nullopt;
  }
  return BestModelStatus{results + kBestModelName, static_cast<int64_t>(iteration->second),
                         *spec.training.keep_best, value->second};
}

// "all 120 iterations are done", or why it were fewer.
std::string DescribeEnd(const Job& job, int64_t iterations) {
  const TrainingSpec& training = job.spec.training;
  const int64_t planned = job.status.plan.has_value() ? job.status.plan->iterations : iterations;
  if (iterations >= planned) return "all " + std::to_string(iterations) + " iterations are done";
  const std::string ended = "training ended after " + std::to_string(iterations) + " of " +
                            std::to_string(planned) + " iterations: ";
  if (!training.early_stopping) return ended + "stopAt.loss was reached";
  return ended + (training.stop_at_loss ? "stopAt.loss was reached, or " : "") +
         "earlyStopping found no better " + std::string(EnumName(training.early_stopping->metric)) +
         " of the test set in " + std::to_string(training.early_stopping->patience) +
         " evaluations";
}

// What worker 0 says of a best model that it could not write; empty = nothing.
std::string DescribeDamagedBest(const RoundView& view, const std::string& results) {
  for (const RoundView::Entry& entry : view.entries) {
    const auto& metrics = entry.slice->record->metrics;
    const auto damaged = metrics.find(kBestDamagedMetric);
    if (damaged == metrics.end()) continue;
    return "; " + std::string(kBestModelName) + " is not written: the checkpoint of iteration " +
           std::to_string(static_cast<int64_t>(damaged->second)) +
           " that it comes from is damaged or missing in the store; the last model, " + results +
           kModelName + ", is whole";
  }
  return "";
}

std::vector<Action> DecideSuccess(const JobSnapshot& snapshot, const RoundView& view) {
  if (!snapshot.memo->results.has_value()) return {CheckResults{}};
  if (!snapshot.memo->results->ok()) {
    if (snapshot.memo->results->code() == StatusCode::kUnavailable) return {CheckResults{}};
    return {FailJob(Reason::kResultsMissing, snapshot.memo->results->message())};
  }
  WriteDecision success;
  success.why = "success";
  const std::string results =
      MakeStoreReference(snapshot.job).uri + "/" + JobPrefix(snapshot.job) + "/results/";
  success.model_uri = results + kModelName;
  for (const RoundView::Entry& entry : view.entries) {
    const bool is_first = entry.role.kind == RoleKind::kWorker && entry.role.rank == 0;
    if (!is_first) continue;
    success.model_digest = entry.slice->record->state_digest;
    success.best_model = BestModelOf(snapshot.job.spec, *entry.slice->record, results);
  }
  success.conditions.push_back(MakeCondition(
      kConditionSuccessCriteriaMet, true, Reason::kTrainingFinished,
      DescribeEnd(snapshot.job, view.next_iteration) + DescribeDamagedBest(view, results)));
  return {success};
}

}  // namespace

ExecutionStatus FallenBack(const JobSnapshot& snapshot) {
  ExecutionStatus next = snapshot.job.status.execution;
  const auto& newest = snapshot.memo->newest_checkpoint;
  if (newest.has_value()) {
    if (newest->iteration > next.first_iteration) next.failures = 0;
    next.first_iteration = newest->iteration;
    next.start_checkpoint = CheckpointToJson(*newest);
  }
  next.functions.clear();
  ++next.incarnation;
  return next;
}

std::vector<Action> DecideRun(const JobSnapshot& snapshot) {
  const Observations& observed = *snapshot.observations;
  const Memo& memo = *snapshot.memo;
  const Round round = *CurrentRound(snapshot.job);
  const bool measures = MeasuresBeside(snapshot.job);
  // Functions of the profiler or of an older plan are released first.
  for (const auto& [uid, fact] : observed.instances) {
    const std::string& group = fact.instance.group;
    const bool wanted = group == WorkersGroupName(round.plan_revision) ||
                        group == ServersGroupName(round.plan_revision) ||
                        (measures && group == kProfileGroup);
    if (!wanted && !fact.gone.has_value()) return {DeleteOneGroup{group}};
  }

  // All slices of other rounds must have ended before any slice of this one starts.
  const auto other = measures ? OfNeither : OfAnotherRound;
  if (std::vector<Action> stops = StopSlices(snapshot, StopManner::kAtOnce, other, round);
      !stops.empty()) {
    return stops;
  }
  for (const auto& [invocation, slice] : observed.slices) {
    if (other(slice, round) && MayRun(slice, observed)) return {};
  }
  std::vector<Action> actions;
  ForgetOthers(snapshot, other, round, &actions);
  if (!actions.empty()) return actions;

  if (snapshot.job.status.execution.functions.empty()) return DecideBinding(snapshot);
  if (!memo.place_taken_by.empty()) {
    return {
        FailJob(Reason::kPlaceTaken,
                "the object of uid " + memo.place_taken_by +
                    " has taken over the job's place in the store, " +
                    MakeStoreReference(snapshot.job).uri + "/" + JobPrefix(snapshot.job) +
                    ", as after a restore from a backup; delete this one: what is there stays")};
  }
  if (memo.place_claimed != round) return {ClaimPlace{round}};
  if (memo.records_read != round) return {ReadRecords{round}};
  const RoundView view = ViewRound(snapshot, round);
  // A broken round is joined as well: slices can only be stopped once their streams are known.
  if (!AllJoined(snapshot, view)) return JoinRound(snapshot, view);
  if (view.broken.has_value()) {
    const bool permanent = view.broken->permanent && !observed.credentials_changed;
    if (permanent) return {FailJob(view.broken->reason, view.broken->message)};
    if (auto rejoin = DecideRejoin(snapshot, view); rejoin.has_value()) {
      // Meanwhile streams of the others may break.
      const std::vector<Action> join = JoinRound(snapshot, view);
      rejoin->insert(rejoin->end(), join.begin(), join.end());
      return *rejoin;
    }
    return DecideFallBack(snapshot, round, view, *view.broken);
  }
  if (view.finished) return DecideSuccess(snapshot, view);
  if (view.all_ended) return DecideNextRound(snapshot, round, view);
  actions = JoinRound(snapshot, view);
  return actions.empty() && measures && HasTrained(view) ? MeasureBeside(snapshot) : actions;
}

}  // namespace lambdadnn
