// SPDX-License-Identifier: Apache-2.0
// Many worlds, one after another, in forked children of a few hundred seeds each: what killed
// processes leak ends with the child, and a seed that crashes or hangs costs only its child.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/faults.h"
#include "tests/simulation/invariant.h"

namespace lambdadnn::simulation {

struct CampaignResult;

struct CampaignOptions {
  uint64_t first_seed = 1;
  uint64_t last_seed = 0;    // inclusive
  double limit_seconds = 0;  // of real time; 0 = none
  // Asked after each child; true ends the campaign. Null = never.
  std::function<bool(const CampaignResult&)> enough;
  int seeds_per_child = 100;
  // A world that takes more CPU time hangs.
  unsigned hang_seconds = 20;
};

struct SeedFailure {
  uint64_t seed = 0;
  Invariant invariant = Invariant::kRuns;
  std::string message;
};

struct CampaignResult {
  uint64_t seeds = 0;
  uint64_t next_seed = 0;
  double seconds = 0;
  std::vector<SeedFailure> failures;
  FaultLedger faults;
  std::vector<int64_t> faults_per_seed;
  std::vector<int64_t> slices_per_seed;
  std::vector<int64_t> incarnations_per_seed;
  std::vector<int64_t> revisions_per_seed;           // of the plan
  std::vector<int64_t> counted_iterations_per_seed;  // whose cost the formula had to be
  double SeedsPerMinute() const;
};

CampaignResult RunCampaign(const CampaignOptions& options);

int64_t Median(std::vector<int64_t> values);

}  // namespace lambdadnn::simulation
