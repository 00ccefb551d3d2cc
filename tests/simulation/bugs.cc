// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/bugs.h"

#include <array>

namespace lambdadnn::simulation {
namespace {

constexpr std::array kBugs = {
    BugInfo{PlantedBug::kGradientMergedTwice, "gradient-merged-twice", 1},
    BugInfo{PlantedBug::kStaleObjectAccepted, "stale-object-accepted", 14},
    BugInfo{PlantedBug::kManifestBeforeParts, "manifest-before-parts", 2},
    BugInfo{PlantedBug::kCheckpointPrunedTooEarly, "checkpoint-pruned-too-early", 1},
    BugInfo{PlantedBug::kOptimizerStateNotRestored, "optimizer-state-not-restored", 4},
    BugInfo{PlantedBug::kStopAtOffByOne, "stop-at-off-by-one", 137},
    BugInfo{PlantedBug::kGarbageTooEarly, "garbage-too-early", 1},
    BugInfo{PlantedBug::kNormsOfOwnGroupOnly, "norms-of-own-group-only", 18},
    BugInfo{PlantedBug::kSliceRunTwice, "slice-run-twice", 1},
    BugInfo{PlantedBug::kOldIncarnationAccepted, "old-incarnation-accepted", 0},
    BugInfo{PlantedBug::kLeaderEpochIgnored, "leader-epoch-ignored", 1},
    BugInfo{PlantedBug::kFinalizerLost, "finalizer-lost", 20},
    BugInfo{PlantedBug::kStatusWithoutVersion, "status-without-version", 454},
    BugInfo{PlantedBug::kIncarnationNotRaised, "incarnation-not-raised", 0},
    BugInfo{PlantedBug::kGarbageNeverCollected, "garbage-never-collected", 1},
};

}  // namespace

std::span<const BugInfo> AllBugs() { return kBugs; }

bool PlantBug(const std::string& name) {
  for (const BugInfo& bug : kBugs) {
    if (name != bug.name) continue;
    planted_bug = bug.bug;
    return true;
  }
  return false;
}

}  // namespace lambdadnn::simulation
