// SPDX-License-Identifier: Apache-2.0
// The plan under which a job trains while it is profiled (spec.profiling: WhileTraining): as few
// functions as the job allows, together as large as one that measures. Pure. docs/design/033.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/plan/workload_facts.h"
#include "operator/api/job.h"
#include "operator/controller/planning/profile_fit.h"

namespace lambdadnn {

// Of the memory of a function, what data and vectors may take of what is known: what the process
// and a batch take is measured later.
inline constexpr double kKnownMemoryPart = 0.5;
// Between its checkpoints, unless an epoch is shorter: how long one takes is not known either.
inline constexpr int64_t kUnmeasuredCheckpointEvery = 100;

// The functions that measure beside it: it takes the place of those that would only keep the
// machine busy.
ProfilePlan ProfilePlanBeside(const JobSpec& spec, const Platform& platform);

// Without a prediction. kFailedPrecondition says why the job has to be profiled first, as the rest
// of a sentence: "spec.objective.fixed names the plan".
Result<Plan> MakeUnmeasuredPlan(const JobSpec& spec, const Platform& platform,
                                const WorkloadFacts& facts);

// The plan in force was made before the model was measured.
bool IsUnmeasured(const Job& job);
// It can be carried out, and the model is measured meanwhile.
bool TrainsUnmeasured(const Job& job);
// The job is profiled before it goes on under another plan.
bool LeavesUnmeasured(const Job& job);

}  // namespace lambdadnn
