// SPDX-License-Identifier: Apache-2.0
// The provisioner: how many functions of which memory train a job, and how their gradients are
// aggregated, so that the objective holds at least cost. Pure: no I/O, no clock, no chance; the
// same input gives the same plan. Equations: docs/theory.md.
//
// Two models predict time and cost: kLambdaDnn (lambda_dnn_model.h, the equations of the paper) and
// kExtended (extended_model.h, what this product runs: layered servers over an object store). The
// exact search returns what trying every candidate would (candidate.h: space and order).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/plan/plan.h"
#include "common/plan/workload.h"

namespace lambdadnn {

enum class PredictionModel { kLambdaDnn, kExtended };
enum class SearchMethod { kExact, kAlgorithm1 };

// What the job says about aggregation; what is absent is chosen. layers may end with the number of
// workers, which then is the only n considered.
struct AggregationConstraints {
  std::optional<TransportKind> transport;
  std::optional<Placement> placement;
  std::optional<int> shards;
  std::vector<int> layers;
  std::optional<int> spread;
  std::optional<int> server_memory_mib;
  // What a server gets at least where server_memory_mib does not say it; 0 = what its rule gives.
  int least_server_memory_mib = 0;
};

struct PlannerOptions {
  PredictionModel model = PredictionModel::kExtended;
  SearchMethod search = SearchMethod::kExact;
  double checkpoint_interval_seconds = 30;
  // Runners-up and the Pareto front as well as the plan. Without them the search skips most of the
  // space.
  bool explain = true;
};

struct PlannerInput {
  WorkloadProfile profile;
  Platform platform;
  TrainingLimits limits;
  // Of what is still to be done; a certificate speaks of the whole, which has taken this already.
  Objective objective;
  double elapsed_seconds = 0;
  double spent_dollars = 0;
  AggregationConstraints aggregation;
  int64_t parameters = 0;  // elements of the exchanged vector; 0 = profile.model_bytes / 4
  PlannerOptions options;
};

// One point of the search space and what it would take.
struct PlanCandidate {
  int functions = 0;
  int memory_mib = 0;
  int server_memory_mib = 0;
  double local_batch_size = 0;  // b_l; a real number in λDNN's model
  int global_batch_size = 0;
  double iterations = 0;  // k; a real number in λDNN's model
  AggregationPlan aggregation;
  Prediction predicted;
};

// Why there is no plan, and what would be one.
struct InfeasibilityCertificate {
  std::vector<std::string> binding;  // what keeps the fastest (cheapest) plan from being better
  std::optional<PlanCandidate> fastest;
  double fastest_seconds = 0;
  double nearest_deadline_seconds = 0;  // the smallest deadline that has a plan
  // Of a budget: the cheapest plan, and the smallest budget that has a plan.
  std::optional<PlanCandidate> cheapest;
  double nearest_budget = 0;
  std::string reason;  // one sentence
};

struct ParetoPoint {
  PlanCandidate candidate;
  bool chosen = false;
};

struct PlanningOutcome {
  bool feasible = false;
  Plan plan;                             // when feasible
  PlanCandidate chosen;                  // the same, as found
  InfeasibilityCertificate certificate;  // when not feasible
  // The best plans with another number of functions, best first; at most three.
  std::vector<PlanCandidate> runners_up;
  // No candidate is both faster and cheaper than one of these; ascending time.
  std::vector<ParetoPoint> pareto_front;
  int64_t evaluated = 0;  // predictions made
};

// kInvalidArgument with one sentence when the input makes no sense (what is wrong, what to do);
// infeasible is an outcome, not an error.
Result<PlanningOutcome> MakePlan(const PlannerInput& input);

// What a given plan would take, under input.options.model. `aggregation.layers` ends with n.
// kInvalidArgument as above; kFailedPrecondition when the plan cannot run at all (why).
Result<PlanCandidate> PredictPlan(const PlannerInput& input, int functions, int memory_mib);

}  // namespace lambdadnn
