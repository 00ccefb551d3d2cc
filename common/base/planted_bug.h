// SPDX-License-Identifier: Apache-2.0
// Defects that the simulator must find (tests/simulation). A place that could go wrong in a way
// that matters asks `Planted(PlantedBug::kName)`. Programs are built without
// LAMBDADNN_SIMULATION: there the answer is a constant false and the place leaves no code behind.
// Only the simulator's own build of the same sources can switch one on.
#pragma once

namespace lambdadnn {

enum class PlantedBug {
  kNone,
  kGradientMergedTwice,        // a server adds its first child twice now and then
  kStaleObjectAccepted,        // an object of another incarnation passes as current
  kManifestBeforeParts,        // a checkpoint is declared complete before its parts are stored
  kTornCheckpointWins,         // a checkpoint without a manifest counts as the newest
  kOptimizerStateNotRestored,  // momentum begins at zero after a fall-back
  kStopAtOffByOne,             // roles disagree by one on where a slice ends
  kGarbageTooEarly,            // objects are deleted an iteration before all readers are done
  kSliceRunTwice,              // the same invocation starts again instead of being attached to
  kOldRevisionAccepted,        // a function takes a slice of an older plan revision or incarnation
  kLeaderEpochIgnored,         // a function takes a slice of a deposed leader
  kFinalizerLost,              // the finalizer goes before the job's objects are gone
  kStatusWithoutVersion,       // status is written without the resourceVersion it was decided on
  kIncarnationNotRaised,       // a fall-back goes on under the old incarnation
  kGarbageNeverCollected,      // abandoned objects stay in the store
};

#ifdef LAMBDADNN_SIMULATION
inline PlantedBug planted_bug = PlantedBug::kNone;
inline bool Planted(PlantedBug bug) { return planted_bug == bug; }
#else
constexpr bool Planted(PlantedBug) { return false; }
#endif

}  // namespace lambdadnn
