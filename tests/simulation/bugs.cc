// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/bugs.h"

#include <array>

#include "common/base/files.h"
#include "common/base/text.h"

namespace lambdadnn::simulation {
namespace {

constexpr std::array kBugs = {
    BugInfo{PlantedBug::kGradientMergedTwice, "gradient-merged-twice"},
    BugInfo{PlantedBug::kStaleObjectAccepted, "stale-object-accepted"},
    BugInfo{PlantedBug::kManifestBeforeParts, "manifest-before-parts"},
    BugInfo{PlantedBug::kCheckpointPrunedTooEarly, "checkpoint-pruned-too-early"},
    BugInfo{PlantedBug::kOptimizerStateNotRestored, "optimizer-state-not-restored"},
    BugInfo{PlantedBug::kStopAtOffByOne, "stop-at-off-by-one"},
    BugInfo{PlantedBug::kGarbageTooEarly, "garbage-too-early"},
    BugInfo{PlantedBug::kNormsOfOwnGroupOnly, "norms-of-own-group-only"},
    BugInfo{PlantedBug::kSliceRunTwice, "slice-run-twice"},
    BugInfo{PlantedBug::kOldIncarnationAccepted, "old-incarnation-accepted"},
    BugInfo{PlantedBug::kLeaderEpochIgnored, "leader-epoch-ignored"},
    BugInfo{PlantedBug::kFinalizerLost, "finalizer-lost"},
    BugInfo{PlantedBug::kStatusWithoutVersion, "status-without-version"},
    BugInfo{PlantedBug::kIncarnationNotRaised, "incarnation-not-raised"},
    BugInfo{PlantedBug::kOlderPlanAccepted, "older-plan-accepted"},
    BugInfo{PlantedBug::kOlderPlanPulled, "older-plan-pulled"},
    BugInfo{PlantedBug::kGarbageNeverCollected, "garbage-never-collected"},
    BugInfo{PlantedBug::kFileNotSynced, "file-not-synced"},
    BugInfo{PlantedBug::kFolderNotSynced, "folder-not-synced"},
    BugInfo{PlantedBug::kLeaseTakenByForeignClock, "lease-taken-by-foreign-clock"},
    BugInfo{PlantedBug::kLeadKeptUnrenewed, "lead-kept-unrenewed"},
};

}  // namespace

std::span<const BugInfo> AllBugs() { return kBugs; }

Result<std::map<std::string, std::vector<uint64_t>>> ReadRecordedSeeds(const std::string& path) {
  LDNN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::map<std::string, std::vector<uint64_t>> seeds;
  for (const std::string& line : Split(text, '\n')) {
    if (line.empty() || line.starts_with("#")) continue;
    const std::vector<std::string> words = Split(line, ' ');
    for (size_t i = 1; i < words.size(); ++i) {
      const auto seed = ParseInteger(words[i]);
      if (!seed.has_value() || *seed < 0) {
        return InvalidArgumentError(path + ": \"" + words[i] + "\" is not a seed");
      }
      seeds[words[0]].push_back(static_cast<uint64_t>(*seed));
    }
  }
  return seeds;
}

bool PlantBug(const std::string& name) {
  for (const BugInfo& bug : kBugs) {
    if (name != bug.name) continue;
    planted_bug = bug.bug;
    return true;
  }
  return false;
}

}  // namespace lambdadnn::simulation
