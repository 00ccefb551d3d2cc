// SPDX-License-Identifier: Apache-2.0
// What must hold in every world, each with the guarantee of the product that it stands for. A world
// that breaks one ends with it; a planted defect names those that are to find it (bugs.h).
#pragma once

#include <optional>
#include <string>

namespace lambdadnn::simulation {

enum class Invariant {
  // Bits.
  kWeights,         // weights and checkpoint parts are those of an undisturbed run (1, 2)
  kModelDigest,     // so is the model, under the plans that status logs (1)
  kPlanFixed,       // a plan's revision has one content (1)
  kCourse,          // all of a revision and incarnation begin with the same weights (1)
  kImmutable,       // an object's payload never changes (2)
  kBegunScope,      // nobody writes in a revision or incarnation that nobody began (7)
  kOwnScope,        // nobody takes an object of another revision or incarnation (2)
  kKnownStart,      // slices start from checkpoints of somebody's (2)
  kRoundsGoOn,      // no two rounds of an incarnation do the same iteration (2)
  kSliceRunsOnce,   // a function runs a slice once (2)
  kSliceOfOne,      // a slice is one function's for good (2)
  kManifestLast,    // a manifest is readable and follows its parts (2)
  kCheckpointKept,  // functions leave a complete checkpoint where there was one (1)
  kReadFirst,       // functions delete no gradient that nobody has read (2)
  kWeightsKept,     // nor weights, before all shards of the next ones are there (2)
  // The store.
  kStoreCost,      // requests and bytes of undisturbed iterations are the formula's (5)
  kMissesBounded,  // so many requests in vain for an object at most (5)
  kStoreBounded,   // a function that goes on has deleted what it stored some iterations ago (5)
  kDurable,        // what was stored for good outlasts a power cut (2)
  kNoObjectLeft,   // nothing but the results is left (5)
  // The job.
  kJobSucceeds,     // it is accepted, is there, can be read, and does not fail (6)
  kJobEnds,         // the world goes on, and the job gets done in time
  kStatusGoesOn,    // incarnation and plan revision never go back (7)
  kNoFunctionLeft,  // none after the job's end or deletion (6)
  kFinalizerEnds,   // in time (6)
  kNoSecretLeft,    // after the job's deletion (6)
  // Leaders.
  kLeaderFence,       // no function takes a request of a deposed leader (7)
  kRevisionFence,     // nor of an older plan (7)
  kIncarnationFence,  // nor of an incarnation that was given up (7)
  kStatusByLeader,    // nobody writes status after a later leader (7)
  kEpochsGrow,        // (7)
  kOneLeader,         // nobody begins to lead beside another (7)
  kLeaseTaken,        // a Lease that nobody renews is taken over in time (7)
  kDeposedEnd,        // who was deposed ends (7)
  // The simulator's own process.
  kRuns,  // it neither crashes nor takes too much time for a world
};

// As reports write it: "weights", "model-digest", …
std::string NameOf(Invariant invariant);
// By that name.
std::optional<Invariant> InvariantOf(const std::string& name);

struct Violation {
  Invariant invariant = Invariant::kRuns;
  // The guarantee, the object and what was expected.
  std::string what;
};

}  // namespace lambdadnn::simulation
