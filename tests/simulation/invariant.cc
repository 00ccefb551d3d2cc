// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/invariant.h"

#include <utility>

namespace lambdadnn::simulation {
namespace {

constexpr std::pair<Invariant, const char*> kNames[] = {
    {Invariant::kWeights, "weights"},
    {Invariant::kModelDigest, "model-digest"},
    {Invariant::kPlanFixed, "plan-fixed"},
    {Invariant::kCourse, "course"},
    {Invariant::kImmutable, "immutable"},
    {Invariant::kBegunScope, "begun-scope"},
    {Invariant::kOwnScope, "own-scope"},
    {Invariant::kKnownStart, "known-start"},
    {Invariant::kRoundsGoOn, "rounds-go-on"},
    {Invariant::kSliceRunsOnce, "slice-runs-once"},
    {Invariant::kSliceOfOne, "slice-of-one"},
    {Invariant::kManifestLast, "manifest-last"},
    {Invariant::kCheckpointKept, "checkpoint-kept"},
    {Invariant::kReadFirst, "read-first"},
    {Invariant::kWeightsKept, "weights-kept"},
    {Invariant::kStoreCost, "store-cost"},
    {Invariant::kMissesBounded, "misses-bounded"},
    {Invariant::kStoreBounded, "store-bounded"},
    {Invariant::kDurable, "durable"},
    {Invariant::kNoObjectLeft, "no-object-left"},
    {Invariant::kJobSucceeds, "job-succeeds"},
    {Invariant::kJobEnds, "job-ends"},
    {Invariant::kStatusGoesOn, "status-goes-on"},
    {Invariant::kNoFunctionLeft, "no-function-left"},
    {Invariant::kFinalizerEnds, "finalizer-ends"},
    {Invariant::kNoSecretLeft, "no-secret-left"},
    {Invariant::kLeaderFence, "leader-fence"},
    {Invariant::kRevisionFence, "revision-fence"},
    {Invariant::kIncarnationFence, "incarnation-fence"},
    {Invariant::kStatusByLeader, "status-by-leader"},
    {Invariant::kEpochsGrow, "epochs-grow"},
    {Invariant::kOneLeader, "one-leader"},
    {Invariant::kLeaseTaken, "lease-taken"},
    {Invariant::kDeposedEnd, "deposed-end"},
    {Invariant::kRuns, "runs"},
};

}  // namespace

std::string NameOf(Invariant invariant) {
  for (const auto& [known, name] : kNames) {
    if (known == invariant) return name;
  }
  return "?";
}

std::optional<Invariant> InvariantOf(const std::string& name) {
  for (const auto& [invariant, known] : kNames) {
    if (name == known) return invariant;
  }
  return std::nullopt;
}

}  // namespace lambdadnn::simulation
