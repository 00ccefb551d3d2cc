// SPDX-License-Identifier: Apache-2.0
// Whether the workers that are to train together compute the same bits, and those that the plan
// pins: pure judgement over what they said.
#pragma once

#include <string>
#include <vector>

#include "operator/controller/decide/action.h"

namespace lambdadnn {

struct FingerprintCheck {
  // Until all workers have said what they compute with: whom to ask (again). Empty = wait.
  bool answered = false;
  std::vector<Action> questions;
  // What differs, as a sentence; empty = they can train together. Of a function that says nothing
  // (of an older version) nothing is compared.
  std::string difference;
  // The plan with what it pins from now on.
  Plan pinned;
};

// `bound`: an instance for every role of the plan, in order. Who was bound to a pinned plan before
// was asked then.
FingerprintCheck CheckFingerprints(const JobSnapshot& snapshot,
                                   const std::vector<BoundFunction>& bound);

}  // namespace lambdadnn
