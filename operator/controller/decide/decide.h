// SPDX-License-Identifier: Apache-2.0
// The whole life of a job as a pure function: what to do next, given what is known now. Level-
// triggered: any state that a crash can leave behind is a valid input, and repeating the actions of
// a pass is harmless. No I/O, no clock, no memory.
//
//   finalizer -> accepted -> [profile] -> plan -> start -> functions -> rounds of slices -> success
//   criteria met -> functions released, report, clean-up -> Complete
//
// A round is one slice of every role from one iteration on. It ends when all roles have stopped at
// the same iteration (next round), finished (success), or when one is lost and not replaced in the
// round, as a worker is: then the others are stopped, the incarnation grows, and all start at the
// newest complete checkpoint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/controller/decide/action.h"
#include "operator/controller/decide/round_view.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

std::vector<Action> Decide(const JobSnapshot& snapshot);
// A job without any condition, whose place in the queue will be known in a moment
// (QueueView::unsettled): waiting for that saves one write of status.
bool IsHeld(const JobSnapshot& snapshot);
// Another controller's, paused by annotation, or with a status that this version cannot go on from:
// nothing is decided or written, and its functions run on. Only the first also outlasts a deletion.
bool IsLeftAlone(const JobSnapshot& snapshot);

// --- Parts, one file each; policies.h says when which of them is asked ---

// Until the job may have functions; nullopt = it may.
std::optional<std::vector<Action>> DecideAdmission(const JobSnapshot& snapshot);
// Of a job that brings its id: how it goes on with what its place holds; nullopt = as any other.
std::optional<std::vector<Action>> DecideRestore(const JobSnapshot& snapshot);
// Of a job that may train while it is profiled: its first plan, or why it is profiled first;
// nullopt = as any other.
std::optional<std::vector<Action>> DecideUnmeasuredPlan(const JobSnapshot& snapshot);
std::vector<Action> DecideProfile(const JobSnapshot& snapshot);
// The same beside a round that runs; never ends what trains. Empty: nothing to do just now.
std::vector<Action> MeasureBeside(const JobSnapshot& snapshot);
// Of a job that has left its unmeasured plan (kLeft): stops what trains, then profiles.
std::vector<Action> DecideProfileFirst(const JobSnapshot& snapshot);
std::vector<Action> DecidePlan(const JobSnapshot& snapshot);
std::vector<Action> DecideRun(const JobSnapshot& snapshot);
// Of a broken round: lost workers are replaced while the other roles wait; nullopt = it falls back.
std::optional<std::vector<Action>> DecideRejoin(const JobSnapshot& snapshot, const RoundView& view);
// The job has a plan that was made for another objective or other bounds, or that exceeds the
// platform, or it is on its way to the next plan.
bool NeedsReplan(const Job& job, const Platform& platform);
std::vector<Action> DecideReplan(const JobSnapshot& snapshot);
// Of a job that trains: where the run differs from its plan's prediction, another plan that is
// worth its switch; nullopt = the job goes on.
std::optional<std::vector<Action>> DecideDrift(const JobSnapshot& snapshot);
std::vector<Action> DecideSuspend(const JobSnapshot& snapshot);
// Until the job has capacity reserved for its functions; nullopt = it is started.
std::optional<std::vector<Action>> AwaitReservation(const JobSnapshot& snapshot);
// With the outcome known: release, report, clean up, then Complete or Failed.
std::vector<Action> DecideEnding(const JobSnapshot& snapshot);
// After the end: time to live.
std::vector<Action> DecideFinished(const JobSnapshot& snapshot);
// Whether no write of the finished job's functions can still land.
bool IsPastLateCleanup(const JobSnapshot& snapshot);
std::vector<Action> DecideDeletion(const JobSnapshot& snapshot);

// --- Shared ---

// FailureTarget with this reason: the job ends as Failed.
Action FailJob(Reason reason, const std::string& message);
// The execution after the round was given up: the newest complete checkpoint (which must have been
// looked up) under a new incarnation.
ExecutionStatus FallenBack(const JobSnapshot& snapshot);
// The next actions until no slice runs, the iteration where they stopped is written and no function
// is left; nullopt = quiesced. `view` is of the current round.
std::optional<std::vector<Action>> Quiesce(const JobSnapshot& snapshot, const RoundView& view);
// The functions of a started job were not ready in time: once none is left, the job goes back into
// the queue.
std::vector<Action> ReleaseReservation(const JobSnapshot& snapshot);
// Of a started job whose new plan needs capacity that is not there: releases its functions before
// it waits for that.
std::optional<std::vector<Action>> QuiesceBeforeOtherReservation(const JobSnapshot& snapshot,
                                                                 const Plan& plan);
// Of a started job: the capacity that this plan needs beyond its reservation is not there.
bool LacksCapacity(const JobSnapshot& snapshot, const Plan& plan);
// "iterations take 2.90 times as long as predicted".
std::string DescribeDrift(const JobSnapshot& snapshot);
// From `execution` on the job is profiled before it goes on.
WriteDecision LeaveUnmeasuredPlan(ExecutionStatus execution, Reason reason, const std::string& why);
// Its bounds, or those of the platform, have changed before it was measured.
bool CannotGoOnUnmeasured(const JobSnapshot& snapshot);
// Once it has no function left: with capacity for `plan` the job stays started, else `write` puts
// it back into the queue.
void ChangeReservation(const JobSnapshot& snapshot, const Plan& plan, WriteDecision* write);
// The checkpoint from which a quiesced job continues.
struct QuiescePoint {
  ExecutionStatus execution;
  bool clean = true;  // false: what had begun is given up for the newest checkpoint
  std::optional<LookUpCheckpoint> look_up;  // to be done first
};
QuiescePoint FindQuiescePoint(const JobSnapshot& snapshot);
// Handles a plan whose first checkpoint was lost before there was another one. The same plan then
// holds from the checkpoint of `write` on, as the next revision: nothing reads what was written
// under the old number.
void HoldPlanFromQuiesce(const JobSnapshot& snapshot, WriteDecision* write);
// Asks every selected slice that may still run to stop: gracefully, then at once, then by deleting
// its function. Empty when none runs.
enum class StopManner { kGraceful, kAtOnce };
std::vector<Action> StopSlices(const JobSnapshot& snapshot, StopManner manner,
                               bool (*selected)(const SliceFact&, const Round&),
                               const Round& round);

}  // namespace lambdadnn
