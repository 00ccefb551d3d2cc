// SPDX-License-Identifier: Apache-2.0
// Defects that the simulator must find. A patch of tests/simulation/planted inserts each into
// copies of production sources, behind `Planted(PlantedBug::kName)`; its first line says what goes
// wrong. Only the simulator is built of these copies, and one defect can be switched on when it
// runs.
#pragma once

namespace lambdadnn {

enum class PlantedBug {
  kNone,
  kGradientMergedTwice,
  kStaleObjectAccepted,
  kManifestBeforeParts,
  kCheckpointPrunedTooEarly,
  kOptimizerStateNotRestored,
  kStopAtOffByOne,
  kGarbageTooEarly,
  kWeightsDeletedTooEarly,
  kNormsOfOwnGroupOnly,
  kSliceRunTwice,
  kOldIncarnationAccepted,
  kLeaderEpochIgnored,
  kFinalizerLost,
  kStatusWithoutVersion,
  kIncarnationNotRaised,
  kOlderPlanAccepted,
  kOlderPlanPulled,
  kGarbageNeverCollected,
  kFileNotSynced,
  kFolderNotSynced,
  kLeaseTakenByForeignClock,
  kLeadKeptUnrenewed,
  kLoopbackStale,
  kDirectAnswerMistaken,
  kEvaluationForgotten,
  kDirectStoredAsWell,
  kDirectReaderForgotten,
  kDirectPullLost,
  kDirectStaleAnswer,
  kDirectCountedTwice,
  kDirectStoredForGood,
  kCheckpointOfLiveWeights,
  kBuffersNotRestored,
  kBuffersUpdated,
};

inline PlantedBug planted_bug = PlantedBug::kNone;
inline bool Planted(PlantedBug bug) { return planted_bug == bug; }

}  // namespace lambdadnn
