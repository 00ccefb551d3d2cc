// SPDX-License-Identifier: Apache-2.0
// What the planner is asked on behalf of a job. Pure.
#pragma once

#include "common/plan/time_factors.h"
#include "operator/api/job.h"
#include "operator/planner/planner.h"

namespace lambdadnn {

// What is over of a job at the time `wall`.
struct JobSpent {
  double active_seconds = 0;  // ActiveSeconds
  double money = 0;
  WallTime wall{};
};

// What deadlines count: since metadata.creationTimestamp, its turn waited for. A job without one,
// such as one in a file, begins at `wall`, and has been active that long before.
double SecondsSinceCreation(const Job& job, const JobSpent& spent);
// Why spec.objective.finishBy cannot be met whatever the plan: it is not later than the job's
// creation. Empty = it may be met.
std::string FinishByInThePast(const Job& job, WallTime wall);

// Seconds from now on until the objective's deadline; absent without one, and hardly above zero
// once it has passed: the planner says by how much it is missed.
std::optional<double> SecondsToDeadline(const Job& job, const JobSpent& spent);

// `spent` is taken off the deadline and the budget. `explain` = with runners-up and Pareto front.
// Needs status.profile, whose times are multiplied by status.execution.corrections.
PlannerInput PlannerInputOf(const Job& job, const Platform& platform, const JobSpent& spent,
                            bool explain);

// Multiplies the times that the input is about: of steps, of the exchange with all that the store
// and servers take, and of starts.
void Correct(const TimeFactors& factors, PlannerInput* input);

// What the rest of a job will cost, from the end of `iteration` on, if it takes so many seconds:
// its functions for that time, and for each iteration what the plan in force predicts beside them.
double RemainingCost(const JobStatus& status, const Platform& platform, int64_t iteration,
                     double seconds);

// The work of the whole job, as far as it is known: the plan that was found, or only iterations and
// parameters when the global batch is given.
std::optional<Plan> WholePlan(const PlannerInput& input, const PlanningOutcome& outcome);
// Limits the input to the iterations from `first_iteration` on, in the same batches.
void LimitToRemaining(const Plan& whole, int64_t first_iteration, TrainingLimits* limits);

// The inputs of a plan that may change while a job lives: fields of the spec, and the sizes in
// `execution` that were too small. The plan in force is out of date when it was made for other
// ones.
PlannedInputs PlannedInputsOf(const JobSpec& spec, const ExecutionStatus& execution);
bool PlanIsOutOfDate(const Job& job);

// The iterations of the whole job for spec.training.epochs, of which `first_iteration` are done
// under `plan`. Where no more are wanted, the job ends with the epoch that it is in.
int64_t IterationsWanted(const JobSpec& spec, const ExecutionPlan& plan, int64_t first_iteration);
// Iterations between checkpoints for spec.checkpoint.intervalSeconds, which may have changed since
// the plan was made. No part of the bits.
int64_t CheckpointEveryOf(const JobSpec& spec, const Plan& plan);

// The least memory of a function after one of `too_small_mib` ran out of it: a quarter
// more, on the platform's grid. 0 = none was.
int LeastMemoryMib(const Platform& platform, int too_small_mib);
// Whether the job lets a plan give more than this to workers, or servers; else `field` is the one
// to raise.
bool MayGrow(const Job& job, const Platform& platform, bool workers, int memory_mib,
             std::string* field);
// Why this plan would give functions what was too small already; empty = it does not.
std::string TooSmall(const Job& job, const Plan& plan);

// The same for the iterations from `first_iteration` on. The global batch stays what it is, so that
// epochs keep their iterations; within an epoch the data order stays as well.
PlannerInput ReplannerInputOf(const Job& job, const Platform& platform, const JobSpent& spent,
                              int64_t first_iteration);
// `planned` as the revision of `job` that follows the one in force.
Plan NextRevision(const Job& job, Plan planned, double elapsed_seconds, double spent,
                  int64_t first_iteration);
// Whether both make the same functions do the same arithmetic.
bool SameWork(const Plan& a, const Plan& b);
// Whether spec.functions still allows this plan.
bool WithinFunctions(const JobSpec& spec, const Plan& plan);
// Whether the platform still allows so many functions of this size. A plan is read from status,
// which others can write as well.
bool WithinPlatform(const JobSpec& spec, const Plan& plan, const Platform& platform);

// "4 functions of 384 MiB and 1 parameter server", for conditions and events.
std::string DescribePlan(const Plan& plan);
PlanRecord RecordOf(const Plan& plan, const std::string& reason, double elapsed_seconds,
                    double spent);
// status.planHistory with one more; the oldest are dropped beyond what the API holds.
std::vector<PlanRecord> WithRecord(const JobStatus& status, PlanRecord record);

}  // namespace lambdadnn
