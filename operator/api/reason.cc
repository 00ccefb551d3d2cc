// SPDX-License-Identifier: Apache-2.0
#include "operator/api/reason.h"

#include <algorithm>
#include <array>

#include "operator/api/job.h"

namespace lambdadnn {
namespace {

constexpr ReasonRow kRows[] = {
    {Reason::kStoreNotUsable, "StoreNotUsable"},
    {Reason::kFunctionsStarting, "FunctionsStarting"},
    {Reason::kImagePullFailed, "ImagePullFailed"},
    {Reason::kUnschedulable, "Unschedulable"},
    {Reason::kFunctionNotCreated, "FunctionNotCreated"},
    {Reason::kFunctionUnreachable, "FunctionUnreachable"},
    {Reason::kJobKeyUnusable, "JobKeyUnusable"},
    {Reason::kQuotaExceeded, "QuotaExceeded"},
    {Reason::kWaitingForCapacity, "WaitingForCapacity"},
    {Reason::kClusterTooSmall, "ClusterTooSmall"},
    {Reason::kUnsupportedByCluster, "UnsupportedByCluster", FailureKind::kUsage},
    {Reason::kExceedsCapacity, "ExceedsCapacity"},
    {Reason::kReplanning, "Replanning"},
    {Reason::kPredictionDrift, "PredictionDrift", FailureKind::kJob, true},
    {Reason::kJobSuspended, "JobSuspended"},
    {Reason::kSpecValid, "SpecValid"},
    {Reason::kPlanned, "Planned"},
    {Reason::kReplanned, "Replanned"},
    {Reason::kPlanUnmeasured, "PlanUnmeasured"},
    {Reason::kProfilingFirst, "ProfilingFirst"},
    {Reason::kPlanKept, "PlanKept"},
    {Reason::kRestored, "Restored"},
    {Reason::kPlaceNotUsed, "PlaceNotUsed"},
    {Reason::kFunctionsReady, "FunctionsReady"},
    {Reason::kSlicesRunning, "SlicesRunning"},
    {Reason::kBetweenSlices, "BetweenSlices"},
    {Reason::kNotRunning, "NotRunning"},
    {Reason::kResumed, "Resumed"},
    {Reason::kRecovered, "Recovered"},
    {Reason::kTrainingFinished, "TrainingFinished"},
    {Reason::kFunctionLost, "FunctionLost"},
    {Reason::kOOMKilled, "OOMKilled"},
    {Reason::kNumericsDiffer, "NumericsDiffer"},
    {Reason::kFunctionSilent, "FunctionSilent"},
    {Reason::kSliceFailed, "SliceFailed"},
    {Reason::kSliceRefused, "SliceRefused"},
    {Reason::kSlicesDisagree, "SlicesDisagree"},
    {Reason::kCredentialsRefused, "CredentialsRefused"},
    {Reason::kCheckpointMissing, "CheckpointMissing"},
    {Reason::kStalled, "Stalled"},
    {Reason::kProfileUncertain, "ProfileUncertain", FailureKind::kJob, true},
    {Reason::kNotMeasured, "NotMeasured", FailureKind::kJob, true},
    {Reason::kMeasurementUnused, "MeasurementUnused"},
    {Reason::kLimitsUnknown, "LimitsUnknown", FailureKind::kJob, true},
    {Reason::kReplanInfeasible, "ReplanInfeasible", FailureKind::kJob, true},
    {Reason::kStatusFieldRefused, "StatusFieldRefused"},
    {Reason::kStatusUnreadable, "StatusUnreadable"},
    {Reason::kSpecUnreadable, "SpecUnreadable"},
    {Reason::kJobNotIsolated, "JobNotIsolated"},
    {Reason::kPeersConnected, "PeersConnected"},
    {Reason::kPeersUnreachable, "PeersUnreachable"},
    {Reason::kPeerChannelOff, "PeerChannelOff"},
    {Reason::kCleanupIncomplete, "CleanupIncomplete"},
    {Reason::kReleaseIncomplete, "ReleaseIncomplete"},
    {Reason::kInfeasible, "Infeasible", FailureKind::kInfeasible},
    {Reason::kPlanningFailed, "PlanningFailed", FailureKind::kUsage},
    {Reason::kStoreNotAllowed, "StoreNotAllowed"},
    {Reason::kPodsNotAllowed, "PodsNotAllowed"},
    {Reason::kNoJobCredentials, "NoJobCredentials"},
    {Reason::kInvalidSpec, "InvalidSpec", FailureKind::kUsage},
    {Reason::kDatasetNotUsable, "DatasetNotUsable", FailureKind::kUsage},
    {Reason::kModelNotUsable, "ModelNotUsable", FailureKind::kUsage},
    {Reason::kProfilingFailed, "ProfilingFailed"},
    {Reason::kFunctionStartFailed, "FunctionStartFailed", FailureKind::kEnvironment},
    {Reason::kBackoffLimitExceeded, "BackoffLimitExceeded"},
    {Reason::kOutOfMemory, "OutOfMemory"},
    {Reason::kDeadlineExceeded, "DeadlineExceeded"},
    {Reason::kResultsMissing, "ResultsMissing"},
    {Reason::kPlaceTaken, "PlaceTaken"},
    {Reason::kResumeFromUnusable, "ResumeFromUnusable", FailureKind::kUsage},
    {Reason::kUnsupportedBackend, "UnsupportedBackend", FailureKind::kUsage},
};

constexpr bool IsInOrder() {
  int position = 0;
  for (const ReasonRow& row : kRows) {
    if (static_cast<int>(row.reason) != position++) return false;
  }
  return true;
}
static_assert(IsInOrder(), "a row stands at the place of its reason");

}  // namespace

std::span<const ReasonRow> AllReasons() { return kRows; }

const ReasonRow& RowOf(Reason reason) { return kRows[static_cast<size_t>(reason)]; }

const char* ReasonText(Reason reason) { return RowOf(reason).text; }

bool HasReason(const Condition& condition, Reason reason) {
  return condition.reason == ReasonText(reason);
}

const ReasonRow* FindReason(std::string_view text) {
  const auto* const found = std::find_if(std::begin(kRows), std::end(kRows),
                                         [&](const ReasonRow& row) { return text == row.text; });
  return found == std::end(kRows) ? nullptr : found;
}

}  // namespace lambdadnn
