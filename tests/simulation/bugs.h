// SPDX-License-Identifier: Apache-2.0
// The planted defects by name, and the record of seeds that find them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tests/simulation/planted_bug.h"

namespace lambdadnn::simulation {

struct BugInfo {
  PlantedBug bug;
  const char* name;
};

std::span<const BugInfo> AllBugs();
// The record that `simulate --record` writes: a line a defect, its name and seeds whose worlds fail
// with the defect and pass without it. Several, because a change of any timing in the product
// changes what happens in every world.
Result<std::map<std::string, std::vector<uint64_t>>> ReadRecordedSeeds(const std::string& path);
// False when there is no such defect.
bool PlantBug(const std::string& name);

}  // namespace lambdadnn::simulation
