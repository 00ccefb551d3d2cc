// SPDX-License-Identifier: Apache-2.0
// The provisioner: how many functions of which memory train a job, and how their gradients are
// aggregated, so that the objective holds at least cost. Pure: no I/O, no clock, no randomness; the
// same input gives the same plan. Equations: docs/theory.md.
//
// A model predicts time and cost (models.h has all of them): kExtended (extended_model.h) what this
// product runs, layered servers over an object store; the others the equations of a paper. The
// exact search returns what trying every candidate would (candidate.h: space and order); searches.h
// has those of other systems beside it. Results are enums and figures; wording.h has the sentences.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/plan/bill.h"
#include "common/plan/plan.h"
#include "common/plan/workload.h"

namespace lambdadnn {

enum class PredictionModel { kExtended, kLambdaDnn, kFeng, kFasDl };
enum class SearchMethod {
  kExact,
  kAlgorithm1,
  kAlgorithm1First,
  kFasDl,
  kLambdaMlAllReduce,
  kLambdaMlScatterReduce,
  kCirrus,
  kOptimus,
  kMlless,
  kKubeMl,
  kLargestMemory,
};

// Limits that bind a plan, or that a candidate breaks (the first five, in the order in which they
// are checked). To add one: its name and meaning in wording.cc.
enum class Limit {
  kMemory,
  kQuota,
  kFunctions,
  kNodes,
  kFunctionTimeout,
  kDeadline,
  kBudget,
  kBatch,
  kParameterServerBandwidth,
  kFixed,
};
inline constexpr size_t kObstacleCount = 5;

// The job's constraints on aggregation; absent ones are chosen. layers may end with the number of
// workers, which then is the only n considered.
struct AggregationConstraints {
  std::optional<TransportKind> transport;
  std::optional<Placement> placement;
  std::optional<int> shards;
  bool shard_per_worker = false;  // K = n, of model fasdl alone; not with `shards`
  std::vector<int> layers;
  std::optional<int> spread;
  std::optional<int> server_memory_mib;
  // Minimum memory of a server if server_memory_mib is not set; 0 = as its rule gives.
  int least_server_memory_mib = 0;
};

struct PlannerOptions {
  PredictionModel model = PredictionModel::kExtended;
  SearchMethod search = SearchMethod::kExact;
  double checkpoint_interval_seconds = 30;
  int checkpoints_kept = 2;
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
  double spent = 0;
  // The deadline of the whole; absent = objective.deadline_seconds and what has passed. Of one that
  // has passed nothing is left, though the objective needs a time above zero.
  std::optional<double> whole_deadline_seconds;
  AggregationConstraints aggregation;
  int64_t parameters = 0;  // elements of the exchanged vector; 0 = profile.model_bytes / 4
  PlannerOptions options;
};

// One point of the search space and what it would take.
struct PlanCandidate {
  int functions = 0;
  int memory_mib = 0;
  int server_memory_mib = 0;
  // Of memory_mib for samples of which a worker cannot keep all, and what all would take; 0 = it
  // keeps its share.
  int sample_memory_mib = 0;
  double share_mib = 0;
  int gpu = 0;                  // of each worker
  double local_batch_size = 0;  // b_l; a real number in λDNN's and Feng's models
  // B^a of FasDL, of the K workers that aggregate; 0 = all have the same batch.
  int aggregator_batch_size = 0;
  int global_batch_size = 0;
  double iterations = 0;  // k; a real number in λDNN's model
  AggregationPlan aggregation;
  Prediction predicted;
  // What the search knew of it before: its lower bound, term by term; as predicted where a model
  // has no closer one.
  Prediction least;
  // What predicted.cost is the price of (extended model). Requests are counted where the platform
  // charges for them.
  Bill bill;
  // Where all prices are zero, what takes the place of the cost: in units of CostMeasure.
  double use = 0;
};

// What plans are compared by where they would be compared by cost. Where nothing has a price, the
// cheapest plan is the one that keeps the least of the machines busy, not the one with the fewest
// functions: core-seconds, or GiB-seconds where functions have no share of the cores.
enum class CostMeasure { kPrices, kCoreSeconds, kGibSeconds };

// Why there is no plan.
enum class Infeasibility {
  kDeadline,      // the fastest plan takes longer
  kBudget,        // the cheapest plan costs more
  kBoth,          // there are plans in time and plans within the budget, but none in both
  kSearch,        // `search` finds none, though there is one
  kWorkerMemory,  // needed_mib is more than largest_mib
  kTrainingRate,  // not positive at any size up to largest_mib
  kQuota,
  kFunctions,
  kNodes,
  kFunctionTimeout,
};

// The figures of it, and what would be a plan. ReasonOf() of wording.h is the sentence.
struct InfeasibilityCertificate {
  Infeasibility kind = Infeasibility::kDeadline;
  std::vector<Limit> binding;  // what keeps the fastest (cheapest) plan from being better
  std::optional<PlanCandidate> fastest;
  double fastest_seconds = 0;           // with the confidence
  double nearest_deadline_seconds = 0;  // the smallest deadline that has a plan
  // Of a budget: the cheapest plan, and the smallest budget that has a plan. Of kBoth: `fastest` is
  // so within the budget and `cheapest` in time, each with what it asks for.
  std::optional<PlanCandidate> cheapest;
  double nearest_budget = 0;
  // What was asked for: the deadline of the whole, the budget of what is still to be done.
  double deadline_seconds = 0;
  double confidence = 0;  // as of the outcome
  double elapsed_seconds = 0;
  double budget = 0;
  double spent = 0;
  std::optional<WallTime> finish_by;  // where the deadline was given as a time
  std::string currency;               // of the amounts
  // Of kSearch: the search, and what it ends with, where it ends with something.
  SearchMethod search = SearchMethod::kExact;
  std::optional<PlanCandidate> found;
  double needed_mib = 0;  // of a worker
  int largest_mib = 0;    // that is allowed
  bool memory_is_fixed = false;
};

// What a search did. A pair (n, m) has a candidate for every option of aggregation; options are
// listed, and their candidates counted, only for pairs that a bound does not leave out before.
// candidates = candidates_left_out + evaluated + those refused for memory, quota or functions. A
// search that is not exact counts what it looked at.
enum class SearchEnd {
  kSpaceCovered,  // every candidate was visited
  kBoundReached,  // the pruned ones could not have been better
  kHeuristic,     // by the search's own rule, whatever it left out
};
struct SearchSummary {
  SearchMethod method = SearchMethod::kExact;
  SearchEnd end = SearchEnd::kSpaceCovered;
  int64_t pairs = 0;           // of the space
  int64_t pairs_left_out = 0;  // a bound shows that none of their candidates can matter
  int64_t candidates = 0;      // of the other pairs
  int64_t candidates_left_out = 0;
  int64_t evaluated = 0;  // predictions made
  // Of the candidates, those that cannot run, by Limit.
  std::array<int64_t, kObstacleCount> refused = {};
  // The least of what the objective minimises (Order::Rank) in what was left out.
  double least_left_out = std::numeric_limits<double>::infinity();
  // How far the plan is at most above the least that any plan could have, as a share of it: 0 = no
  // plan is better. Absent without a plan, or where the search does not tell.
  std::optional<double> gap;
};

struct ParetoPoint {
  PlanCandidate candidate;
  double seconds = 0;  // as plans are compared by: with the confidence of the outcome
  bool chosen = false;
};

struct PlanningOutcome {
  bool feasible = false;
  // The deadline cannot be met (`certificate` says why), and the plan is the fastest within the
  // budget: objective.best_effort.
  bool best_effort = false;
  Plan plan;                             // when feasible
  PlanCandidate chosen;                  // the same, as found
  InfeasibilityCertificate certificate;  // when not feasible, or feasible by best effort alone
  // With which probability plans take no longer than the times that they are compared by. 0 = by
  // the expected times: there is no deadline, or the model tells no deviations.
  double confidence = 0;
  CostMeasure measure = CostMeasure::kPrices;
  std::string currency;  // of the platform's prices
  // The best plans with another number of functions, best first; at most three.
  std::vector<PlanCandidate> runners_up;
  // No candidate is both faster and cheaper than one of these; ascending time.
  std::vector<ParetoPoint> pareto_front;
  // Of the search whose answer this is.
  SearchSummary search;
  // What limits the plan, as in plan.binding.
  std::vector<Limit> binding;
};

// kInvalidArgument with one sentence when the input makes no sense (what is wrong, what to do);
// infeasible is an outcome, not an error.
Result<PlanningOutcome> MakePlan(const PlannerInput& input);

// What takes the place of the cost where all prices are zero, else the cost.
double ComparedCost(const PlanCandidate& candidate, CostMeasure measure);
// What plans on this platform are compared by.
CostMeasure MeasureOf(const Platform& platform, PredictionModel model);

// What a given plan would take, under input.options.model. `aggregation.layers` ends with n.
// kInvalidArgument as above; kFailedPrecondition when the plan cannot run at all (why).
Result<PlanCandidate> PredictPlan(const PlannerInput& input, int functions, int memory_mib);

}  // namespace lambdadnn
