// SPDX-License-Identifier: Apache-2.0
// Whether the workers that are to train together compute the same bits, and those that the plan
// pins: pure judgement over what they said.
#pragma once

#include <string>
#include <vector>

#include "operator/controller/decide/action.h"

namespace lambdadnn {

struct FingerprintCheck {
  // False until all workers have told their fingerprint; then `questions` asks those that have not.
  // Empty = wait.
  bool answered = false;
  std::vector<Action> questions;
  // What differs, as a sentence; empty = they can train together. A function that tells nothing (an
  // older version) is not compared.
  std::string difference;
  // The plan with what it pins from now on.
  Plan pinned;
};

// `bound`: an instance for every role of the plan, in order. Instances that were bound under a
// pinned plan before have answered already.
FingerprintCheck CheckFingerprints(const JobSnapshot& snapshot,
                                   const std::vector<BoundFunction>& bound);

}  // namespace lambdadnn
