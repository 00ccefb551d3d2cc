// SPDX-License-Identifier: Apache-2.0
// The least that can drive a gang of functions without a controller: for tests that look at the
// data plane alone (timing, counts), in an undisturbed or nearly undisturbed world. It starts all
// roles, starts the next slices where they stopped, and falls back to the newest checkpoint under a
// higher incarnation when a role is lost.
#pragma once

#include <cstdint>
#include <optional>

#include "common/objectstore/object_store.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_functions.h"

namespace lambdadnn::simulation {

struct GangResult {
  bool done = false;
  int64_t slices = 0;
  int64_t incarnation = 0;
  int64_t checkpoints = 0;
  Status error;                      // of a role that failed permanently
  std::vector<SliceRecord> records;  // of slices that ended with one
};

// The roles of a plan: workers, then servers by rank.
std::vector<Role> RolesOf(const Plan& plan);

// Runs in a fiber of `process` until the job is done or failed.
void DriveGang(const Scenario& scenario, const std::string& prefix, SimPlatform& platform,
               SimProcess& process, ObjectStore& store, GangResult* result);

}  // namespace lambdadnn::simulation
