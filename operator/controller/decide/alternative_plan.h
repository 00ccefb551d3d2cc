// SPDX-License-Identifier: Apache-2.0
// What another plan for the rest of a job that trains is worth, its switch included: the iteration
// under way, a checkpoint, the release of the functions that are there, and another start. Pure.
#pragma once

#include <optional>
#include <string>

#include "operator/controller/observe/snapshot.h"
#include "operator/controller/planning/planning.h"
#include "operator/planner/planner.h"

namespace lambdadnn {

struct AlternativePlan {
  // Of the plan in force, for what is left, as if its functions had to start; absent = it cannot be
  // predicted.
  std::optional<PlanCandidate> current;
  bool misses_deadline = false;  // the plan in force, by the prediction and its confidence
  bool misses_budget = false;

  bool feasible = false;  // there is a plan for what is left
  // Needed, or worth its switch; by a profile that is uncertain only where the one in force is
  // late.
  std::optional<Plan> plan;
  double saving = 0;     // of what the objective minimises, as a share
  std::string obstacle;  // where no plan is in time: why
};

// What the run has shown so far; absent = it is as predicted.
struct RunSoFar {
  TimeFactors corrections;  // of the profile
  std::optional<double> iteration_seconds;
  std::optional<bool> late;  // the plan in force will miss its deadline
};
AlternativePlan FindAlternative(const JobSnapshot& snapshot, int64_t iteration,
                                const RunSoFar& run);

// For what the profile is corrected in further plans: what was learnt of the plan in force, or,
// where that was made before the model was measured, of its iterations so far.
TimeFactors CorrectionsOf(const JobSnapshot& snapshot);

// The plan in force, for what is left, as if its functions had to start, by what the run has shown
// of each term. That is nearer than the model with a profile that is corrected likewise: stalls of
// a quota fall into the exchange as well as into steps, and it divides an iteration in another way.
Result<Prediction> PredictByRun(const JobSnapshot& snapshot, int64_t iteration,
                                const TimeFactors& shown);

// What is over of the job now.
JobSpent SpentOf(const JobSnapshot& snapshot);

}  // namespace lambdadnn
