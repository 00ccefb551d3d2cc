// SPDX-License-Identifier: Apache-2.0
// What a plan rests on beside numbers that somebody gave or measured. `lambdadnn plan` prints a
// line for each, so that a reader sees which part of a prediction is nobody's word.
#pragma once

#include <string>
#include <vector>

#include "operator/planner/planner.h"

namespace lambdadnn {

struct Assumption {
  std::string field;  // that would replace it: "platform.store.bytesPerSecond"
  std::string taken;  // what the model takes instead: "servers merge in no time"
};

// Of the numbers that input.options.model reads, in the order of the profile and the platform.
std::vector<Assumption> AssumptionsOf(const PlannerInput& input);

}  // namespace lambdadnn
