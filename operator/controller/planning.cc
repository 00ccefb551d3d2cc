// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning.h"

#include <algorithm>

#include "operator/resources/training_config_builder.h"

namespace lambdadnn {

PlannerInput PlannerInputOf(const Job& job, const Platform& platform, double elapsed_seconds,
                            double spent, bool explain) {
  LDNN_CHECK(job.status.profile.has_value(), "planning needs a profile");
  PlannerInput input;
  input.profile = *job.status.profile;
  input.platform = platform;
  input.limits = BuildTrainingLimits(job.spec);
  input.objective = job.spec.objective;
  if (input.objective.deadline_seconds.has_value()) {
    // Never zero: the planner says by how much a deadline is missed.
    input.objective.deadline_seconds =
        std::max(0.001, *input.objective.deadline_seconds - elapsed_seconds);
  }
  if (input.objective.budget.has_value()) {
    input.objective.budget = std::max(1e-12, *input.objective.budget - spent);
  }
  const AggregationSpec& spec = job.spec.aggregation;
  input.aggregation.transport = TransportKind::kObjectStore;
  input.aggregation.placement = Placement::kDedicated;
  input.aggregation.shards = spec.shards;
  input.aggregation.layers = spec.layers;
  input.aggregation.spread = spec.spread;
  input.aggregation.server_memory_mib = spec.server_memory_mib;
  input.options.checkpoint_interval_seconds = job.spec.checkpoint.interval_seconds;
  input.options.explain = explain;
  return input;
}

}  // namespace lambdadnn
