// SPDX-License-Identifier: Apache-2.0
// The planted defects by name, and the record of seeds that find them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tests/simulation/campaign.h"
#include "tests/simulation/invariant.h"
#include "tests/simulation/planted_bug.h"

namespace lambdadnn::simulation {

struct BugInfo {
  PlantedBug bug;
  const char* name;
  // It is found when one of these is broken; what else it breaks does not count.
  std::vector<Invariant> found_by;
};

std::span<const BugInfo> AllBugs();
// Null when there is no such defect.
const BugInfo* FindBug(const std::string& name);

struct BugSearch {
  std::vector<SeedFailure> found;    // by its invariants, in worlds that pass without the defect
  std::vector<SeedFailure> others;   // in its presence, by other invariants
  std::vector<SeedFailure> without;  // fail without it as well
  CampaignResult campaign;
};
// Runs the seeds with the defect until `enough` of them have found it.
BugSearch SearchBug(const BugInfo& bug, CampaignOptions options, size_t enough);

// The record that `simulate --record` writes: a line a defect, its name and seeds that find it.
// Several, because a change of any timing in the product changes what happens in every world.
Result<std::map<std::string, std::vector<uint64_t>>> ReadRecordedSeeds(const std::string& path);

}  // namespace lambdadnn::simulation
