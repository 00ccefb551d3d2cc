// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/bugs.h"

#include <algorithm>

#include "common/base/files.h"
#include "common/base/text.h"

namespace lambdadnn::simulation {
namespace {

constexpr unsigned kHangSeconds = 5;

const std::vector<BugInfo>& Bugs() {
  static const std::vector<BugInfo> bugs = {
      {PlantedBug::kGradientMergedTwice, "gradient-merged-twice", {Invariant::kWeights}},
      {PlantedBug::kStaleObjectAccepted, "stale-object-accepted", {Invariant::kWeights}},
      {PlantedBug::kManifestBeforeParts, "manifest-before-parts", {Invariant::kManifestLast}},
      {PlantedBug::kCheckpointPrunedTooEarly,
       "checkpoint-pruned-too-early",
       {Invariant::kCheckpointKept}},
      {PlantedBug::kOptimizerStateNotRestored,
       "optimizer-state-not-restored",
       {Invariant::kWeights}},
      {PlantedBug::kStopAtOffByOne, "stop-at-off-by-one", {Invariant::kModelDigest}},
      {PlantedBug::kGarbageTooEarly, "garbage-too-early", {Invariant::kReadFirst}},
      {PlantedBug::kWeightsDeletedTooEarly, "weights-deleted-too-early", {Invariant::kWeightsKept}},
      {PlantedBug::kNormsOfOwnGroupOnly, "norms-of-own-group-only", {Invariant::kWeights}},
      {PlantedBug::kSliceRunTwice, "slice-run-twice", {Invariant::kSliceRunsOnce}},
      {PlantedBug::kOldIncarnationAccepted,
       "old-incarnation-accepted",
       {Invariant::kIncarnationFence}},
      {PlantedBug::kLeaderEpochIgnored, "leader-epoch-ignored", {Invariant::kLeaderFence}},
      {PlantedBug::kFinalizerLost,
       "finalizer-lost",
       {Invariant::kNoFunctionLeft, Invariant::kNoObjectLeft}},
      {PlantedBug::kStatusWithoutVersion, "status-without-version", {Invariant::kStatusByLeader}},
      {PlantedBug::kIncarnationNotRaised,
       "incarnation-not-raised",
       {Invariant::kRoundsGoOn, Invariant::kSliceOfOne}},
      {PlantedBug::kOlderPlanAccepted, "older-plan-accepted", {Invariant::kModelDigest}},
      {PlantedBug::kOlderPlanPulled, "older-plan-pulled", {Invariant::kOwnScope}},
      {PlantedBug::kGarbageNeverCollected, "garbage-never-collected", {Invariant::kNoObjectLeft}},
      {PlantedBug::kFileNotSynced, "file-not-synced", {Invariant::kDurable}},
      {PlantedBug::kFolderNotSynced, "folder-not-synced", {Invariant::kDurable}},
      {PlantedBug::kLeaseTakenByForeignClock,
       "lease-taken-by-foreign-clock",
       {Invariant::kOneLeader, Invariant::kLeaseTaken}},
      {PlantedBug::kLeadKeptUnrenewed,
       "lead-kept-unrenewed",
       {Invariant::kOneLeader, Invariant::kDeposedEnd}},
      {PlantedBug::kLoopbackStale,
       "loopback-stale",
       {Invariant::kWeights, Invariant::kModelDigest}},
      {PlantedBug::kDirectAnswerMistaken,
       "direct-answer-mistaken",
       {Invariant::kWeights, Invariant::kModelDigest}},
      {PlantedBug::kEvaluationForgotten, "evaluation-forgotten", {Invariant::kModelDigest}},
      {PlantedBug::kDirectStoredAsWell, "direct-stored-as-well", {Invariant::kStoreCost}},
      {PlantedBug::kDirectReaderForgotten,
       "direct-reader-forgotten",
       {Invariant::kJobSucceeds, Invariant::kJobEnds}},
      {PlantedBug::kDirectPullLost,
       "direct-pull-lost",
       {Invariant::kJobSucceeds, Invariant::kJobEnds}},
      {PlantedBug::kDirectStaleAnswer,
       "direct-stale-answer",
       {Invariant::kWeights, Invariant::kModelDigest}},
      {PlantedBug::kDirectCountedTwice,
       "direct-counted-twice",
       {Invariant::kWeights, Invariant::kModelDigest}},
      {PlantedBug::kDirectStoredForGood, "direct-stored-for-good", {Invariant::kStoreBounded}},
      {PlantedBug::kCheckpointOfLiveWeights, "checkpoint-of-live-weights", {Invariant::kWeights}},
      {PlantedBug::kBuffersNotRestored, "buffers-not-restored", {Invariant::kWeights}},
      {PlantedBug::kBuffersUpdated, "buffers-updated", {Invariant::kWeights}},
  };
  return bugs;
}

}  // namespace

std::span<const BugInfo> AllBugs() { return Bugs(); }

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

const BugInfo* FindBug(const std::string& name) {
  for (const BugInfo& bug : Bugs()) {
    if (name == bug.name) return &bug;
  }
  return nullptr;
}

BugSearch SearchBug(const BugInfo& bug, CampaignOptions options, size_t enough) {
  BugSearch search;
  size_t looked_at = 0;
  const auto look = [&](const CampaignResult& result) {
    for (; looked_at < result.failures.size() && search.found.size() < enough; ++looked_at) {
      const SeedFailure& failure = result.failures[looked_at];
      if (std::ranges::find(bug.found_by, failure.invariant) == bug.found_by.end()) {
        search.others.push_back(failure);
        continue;
      }
      CampaignOptions one;
      one.first_seed = one.last_seed = failure.seed;
      planted_bug = PlantedBug::kNone;
      const std::vector<SeedFailure> without = RunCampaign(one).failures;
      planted_bug = bug.bug;
      search.without.insert(search.without.end(), without.begin(), without.end());
      if (without.empty()) search.found.push_back(failure);
    }
    return search.found.size() >= enough;
  };
  options.enough = look;
  options.seeds_per_child = 10;
  // Some defects make worlds hang, which finds none of them.
  options.hang_seconds = kHangSeconds;
  planted_bug = bug.bug;
  search.campaign = RunCampaign(options);
  planted_bug = PlantedBug::kNone;
  return search;
}

}  // namespace lambdadnn::simulation
