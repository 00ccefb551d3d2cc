// SPDX-License-Identifier: Apache-2.0
// The planted defects by name, each with a seed that finds it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/base/planted_bug.h"

namespace lambdadnn::simulation {

struct BugInfo {
  PlantedBug bug;
  const char* name;
  // A seed whose world fails with the defect and passes without it; continuous integration replays
  // it. 0 = none is recorded yet.
  uint64_t seed;
};

std::span<const BugInfo> AllBugs();
// False when there is no such defect.
bool PlantBug(const std::string& name);

}  // namespace lambdadnn::simulation
