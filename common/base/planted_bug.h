// SPDX-License-Identifier: Apache-2.0
// Defects that the simulator must find (tests/simulation). A place that could go wrong in a way
// that matters asks `Planted(PlantedBug::kName)`. Programs are built without
// LAMBDADNN_SIMULATION: there the answer is a constant false and the place leaves no code behind.
// Only the simulator's own build of the same sources can switch one on.
#pragma once

namespace lambdadnn {

enum class PlantedBug {
  kNone,
  kGradientMergedTwice,        // a server adds some children twice
  kStaleObjectAccepted,        // weights of the version before pass as the new ones
  kManifestBeforeParts,        // a checkpoint is declared complete before its parts are stored
  kCheckpointPrunedTooEarly,   // old checkpoints go before the new one is complete
  kOptimizerStateNotRestored,  // momentum begins at zero in every slice
  kStopAtOffByOne,             // a slice that stops one iteration early counts as the last
  kGarbageTooEarly,            // a gradient is deleted before it was read
  kNormsOfOwnGroupOnly,        // clipping takes the norm of one spread group for that of all
  kSliceRunTwice,              // an invocation that has ended starts again instead of attaching
  kOldIncarnationAccepted,     // a function takes a slice of an incarnation that was given up
  kLeaderEpochIgnored,         // a function takes a slice of a deposed leader
  kFinalizerLost,              // the finalizer goes before what it holds
  kStatusWithoutVersion,       // status is written without the resourceVersion it was decided on
  kIncarnationNotRaised,       // a fall-back goes on under the old incarnation
  kOlderPlanAccepted,          // a checkpoint that an older plan wrote after its end counts
  kOlderPlanPulled,            // a function takes what one of an older plan wrote for its own
  kGarbageNeverCollected,      // the exchange's objects stay in the store
  kFileNotSynced,              // a file store renames a file whose content is not on the disk yet
  kFolderNotSynced,            // a file store does not sync the folders of what it has written
  kLeaseTakenByForeignClock,   // a Lease's age is taken from its renewTime, by the own wall clock
  kLeadKeptUnrenewed,          // a leader whose renewals fail or hang does not end by its own clock
};

#ifdef LAMBDADNN_SIMULATION
inline PlantedBug planted_bug = PlantedBug::kNone;
inline bool Planted(PlantedBug bug) { return planted_bug == bug; }
#else
constexpr bool Planted(PlantedBug) { return false; }
#endif

}  // namespace lambdadnn
