// SPDX-License-Identifier: Apache-2.0
// What the controller knows of one job at one moment: all that Decide and ComputeStatus read.
// Nothing in here is a decision: those are in the job's status.
#pragma once

#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "operator/api/conditions.h"
#include "operator/api/job.h"
#include "operator/controller/observe/memo.h"
#include "operator/controller/observe/observations.h"
#include "operator/controller/options.h"

namespace lambdadnn {

// Sums that only grow; they start from status.usage after a restart of the controller.
struct Meter {
  UsageStatus usage;
  // Of slices that are not over, for what they told: US dollars, not yet in usage.cost.
  double open_cost = 0;
  double Spent() const { return usage.cost + open_cost; }
  double samples_per_second = 0;
  std::optional<double> loss;
  TestMetrics test;
};

// Observations and memo are those of the job's memory, not copies: they change between two
// decisions of a pass, never during one, since one pass at a time is made over a job.
struct JobSnapshot {
  Job job;
  // Why what the user wrote cannot be used as it is (decoding, validation); OK = it can.
  Status problem;
  // What of the job this version cannot go on from, so that it is left alone; OK = nothing.
  Status unreadable;
  // Why the job may not reach what it names (TenantRules); OK = it may.
  Status reach;
  // Why its pods may not be as spec.podTemplate says (PodRules); OK = they may.
  Status pods;
  std::shared_ptr<const Observations> observations;
  std::shared_ptr<const Memo> memo;
  Meter meter;
  Instant now{};
  WallTime wall{};

  const ControllerOptions* options = nullptr;
};

// Helpers shared by Decide and ComputeStatus.

// What functions of the job may be.
const Platform& PlatformOf(const JobSnapshot& snapshot);
// What functions that profile it may be.
const Platform& ProfilePlatformOf(const JobSnapshot& snapshot);

std::optional<Round> CurrentRound(const Job& job);
// Whether a checkpoint was written under the plan revision that was in force at its iteration. A
// function of an older revision that is cut off may have written later ones; those do not count.
bool IsOfThePlans(const Job& job, const CheckpointReference& checkpoint);
// The same without the newest revisions, as far as they have no checkpoint yet: for when the
// checkpoint that they were to begin with is lost.
bool IsOfTheEarlierPlans(const Job& job, const CheckpointReference& checkpoint);
// Seconds since status.startTime (0 when not started) plus those before it last waited
// or was suspended.
double ActiveSeconds(const Job& job, WallTime wall);
// status.startTime: admitted, and with a reservation for its functions.
bool IsStarted(const Job& job);

}  // namespace lambdadnn
