// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/job_outcome.h"

#include "operator/cli/command.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

int ExitCodeOfFinished(const Job& job) {
  if (HasCondition(job, kConditionComplete)) return kExitComplete;
  const Condition* failed = FindCondition(job, kConditionFailed);
  if (failed == nullptr) return kExitJobFailed;
  if (failed->reason == "Infeasible") return kExitInfeasible;
  const bool unusable = failed->reason == "InvalidSpec" || failed->reason == "PlanningFailed" ||
                        failed->reason == "ResumeFromUnusable" ||
                        failed->reason.starts_with("Unsupported");
  if (unusable) return kExitUsage;
  return failed->reason == "FunctionStartFailed" ? kExitEnvironment : kExitJobFailed;
}

std::string DescribeFailure(const Job& job) {
  if (!HasCondition(job, kConditionFailed)) return "";
  const Condition& failed = *FindCondition(job, kConditionFailed);
  return "job " + job.metadata.name + " failed: " + failed.reason + ": " + failed.message;
}

}  // namespace lambdadnn
