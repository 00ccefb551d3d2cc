// SPDX-License-Identifier: Apache-2.0
// Reasons of conditions and events: the one table of their names, with texts and exit codes.
// docs/operations.md (Troubleshooting) explains each.
#pragma once

#include <span>
#include <string_view>

namespace lambdadnn {

struct Condition;

enum class Reason {
  kStoreNotUsable,
  kFunctionsStarting,
  kImagePullFailed,
  kUnschedulable,
  kFunctionNotCreated,
  kFunctionUnreachable,
  kJobKeyUnusable,
  kQuotaExceeded,
  kWaitingForCapacity,
  kClusterTooSmall,
  kUnsupportedByCluster,
  kExceedsCapacity,
  kReplanning,
  kPredictionDrift,
  kJobSuspended,
  kSpecValid,
  kPlanned,
  kReplanned,
  kPlanUnmeasured,
  kProfilingFirst,
  kPlanKept,
  kRestored,
  kPlaceNotUsed,
  kFunctionsReady,
  kSlicesRunning,
  kBetweenSlices,
  kNotRunning,
  kResumed,
  kRecovered,
  kTrainingFinished,
  kFunctionLost,
  kOOMKilled,
  kNumericsDiffer,
  kFunctionSilent,
  kSliceFailed,
  kSliceRefused,
  kSlicesDisagree,
  kCredentialsRefused,
  kCheckpointMissing,
  kStalled,
  kProfileUncertain,
  kNotMeasured,
  kMeasurementUnused,
  kLimitsUnknown,
  kReplanInfeasible,
  kStatusFieldRefused,
  kStatusUnreadable,
  kSpecUnreadable,
  kJobNotIsolated,
  kPeersConnected,
  kPeersUnreachable,
  kPeerChannelOff,
  kCleanupIncomplete,
  kReleaseIncomplete,
  kInfeasible,
  kPlanningFailed,
  kStoreNotAllowed,
  kPodsNotAllowed,
  kNoJobCredentials,
  kInvalidSpec,
  kDatasetNotUsable,
  kModelNotUsable,
  kProfilingFailed,
  kFunctionStartFailed,
  kBackoffLimitExceeded,
  kOutOfMemory,
  kDeadlineExceeded,
  kResultsMissing,
  kPlaceTaken,
  kResumeFromUnusable,
  kUnsupportedBackend,
};

// Kind of a failure, from which its exit code follows.
enum class FailureKind {
  kJob,          // the job's own failure
  kUsage,        // the job cannot be run as specified
  kInfeasible,   // no plan reaches the objective
  kEnvironment,  // the machine or cluster cannot run functions
};

struct ReasonRow {
  Reason reason;
  const char* text;
  FailureKind failure = FailureKind::kJob;
  // As the reason of Degraded: it stays although training goes on.
  bool sticky = false;
};

// In the order of the enum.
std::span<const ReasonRow> AllReasons();
const ReasonRow& RowOf(Reason reason);
const char* ReasonText(Reason reason);
bool HasReason(const Condition& condition, Reason reason);
// The row of a reason that was read; of one that this version does not know, null.
const ReasonRow* FindReason(std::string_view text);

}  // namespace lambdadnn
