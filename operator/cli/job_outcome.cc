// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/job_outcome.h"

#include "operator/api/conditions.h"
#include "operator/cli/command.h"

namespace lambdadnn {

int ExitCodeOfFinished(const Job& job) {
  if (HasCondition(job, kConditionComplete)) return kExitComplete;
  const Condition* failed = FindCondition(job, kConditionFailed);
  const ReasonRow* const row = failed == nullptr ? nullptr : FindReason(failed->reason);
  if (row == nullptr) return kExitJobFailed;
  switch (row->failure) {
    case FailureKind::kUsage:
      return kExitUsage;
    case FailureKind::kInfeasible:
      return kExitInfeasible;
    case FailureKind::kEnvironment:
      return kExitEnvironment;
    case FailureKind::kJob:
      break;
  }
  return kExitJobFailed;
}

std::string DescribeFailure(const Job& job) {
  if (!HasCondition(job, kConditionFailed)) return "";
  const Condition& failed = *FindCondition(job, kConditionFailed);
  return "job " + job.metadata.name + " failed: " + failed.reason + ": " + failed.message;
}

}  // namespace lambdadnn
