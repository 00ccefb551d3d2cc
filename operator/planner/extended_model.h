// SPDX-License-Identifier: Apache-2.0
// The default model, time and cost of a run of this product: λDNN's terms with whole iterations and
// a short last batch, the exchange through an object store (common/plan/iteration_time.h,
// collective_cost.h), cold start, evaluation, checkpoints, slices, the memory and price of servers
// and sidecars, and the prices of requests. docs/theory.md has the equations. Terms whose inputs
// are zero are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/plan/bill.h"
#include "common/plan/collective_cost.h"
#include "common/plan/exchange_cpu.h"
#include "common/plan/iteration_time.h"
#include "operator/planner/exchange_rates.h"
#include "operator/planner/function_memory.h"
#include "operator/planner/performance_model.h"
#include "operator/planner/space.h"

namespace lambdadnn {

// A server gets memory for at least this share of a core: with less, a request waits for the next
// CPU period.
inline constexpr double kLeastServerMilliCpu = 250;
// An aggregation with everything about it that does not depend on the workers' memory.
struct AggregationOption {
  AggregationPlan plan;
  int server_memory_mib = 0;
  int servers = 0;
  ExchangeStages stages;
  double servers_mib = 0;  // sidecars included
  double worker_mib = 0;   // that workers need for the exchange, servers beside them included
  double servers_milli_cpu = 0;
  double second_price = 0;   // of all servers, in the currency of the prices
  RequestCount requests;     // of one iteration; none where they cost nothing
  double request_price = 0;  // of one iteration
  double run_factor = 1;     // that runs showed of this exchange (RunFactors)
  ExchangeCpu cpu;
  double server_core_share = 1;  // of a core, that a server has
  double straggler_seconds =
      0;  // of an iteration: the slowest hand-over of a shard, beyond the mean
  double unhindered_straggler_seconds = 0;  // the same where no quota stops the functions
};

// Seconds of one iteration.
struct IterationTerms {
  double compute = 0;
  double exchange = 0;
};

// What a worker whose share of the data does not fit into its memory reads again.
struct RereadTerms {
  double cpu_seconds = 0;    // of the samples of an iteration
  double wait_seconds = 0;   // for the store, of the same
  double training_part = 0;  // of its training samples, in each epoch; with mixup of partners, too
  double test_part = 0;      // of its test samples, at each evaluation
};

// Of one sample that is read again.
struct SampleRead {
  double requests = 0;
  double cpu_seconds = 0;
  double wait_seconds = 0;
};

// Everything of n workers that depends neither on their memory nor on the aggregation.
struct WorkerTerms {
  int functions = 1;
  int global_batch = 1;
  int64_t iterations = 1;
  int64_t iterations_per_epoch = 1;
  double samples = 0;      // that one worker trains on, over the whole job
  double local_batch = 1;  // ceil(b_g / n)
  WorkerMemory memory;
  double evaluated_samples = 0;
  double loaded_samples = 0;  // by one worker, those for evaluations included
};

class ExtendedModel : public PerformanceModel {
 public:
  // `memory_mib`: of the space; needed by what takes boxes.
  explicit ExtendedModel(const PlannerInput& input, std::vector<int> memory_mib = {});
  static Status Validate(const PlannerInput& input);

  WorkerTerms Workers(int functions) const;
  AggregationOption Option(const AggregationPlan& plan) const;
  std::vector<AggregationOption> Options(int functions) const;

  // R(m) and B_fs(m) are positive.
  bool Possible(const WorkerTerms& workers, int memory_mib) const;
  std::optional<Limit> Check(const WorkerTerms& workers, int memory_mib,
                             const AggregationOption& option) const;
  // Nothing where the share fits.
  RereadTerms Reread(const WorkerTerms& workers, int memory_mib,
                     const AggregationOption& option) const;
  // Whether workers and servers fit on the platform's nodes; slower than Check.
  bool FitsNodes(const WorkerTerms& workers, int memory_mib, const AggregationOption& option) const;
  // Requires Possible(). Empty when an iteration does not fit into a slice.
  std::optional<Prediction> Predict(const WorkerTerms& workers, int memory_mib,
                                    const AggregationOption& option) const;
  // The same with FixedTerms() of these workers.
  std::optional<Prediction> Predict(const WorkerTerms& workers, int memory_mib,
                                    const AggregationOption& option, const Prediction& fixed) const;
  // Not more than Predict() gives, in a hundredth of the time: bounds in place of a simulation.
  std::optional<Prediction> LeastPrediction(const WorkerTerms& workers, int memory_mib,
                                            const AggregationOption& option,
                                            const Prediction& fixed) const;
  // The terms that do not depend on the aggregation; kCompute: at the mean speed of the quota;
  // kCheckpoint: the trained model's alone. Requires Possible().
  Bill WorkersBill(int memory_mib, double count, double seconds) const {
    return FunctionBill(input_.platform, memory_mib, input_.limits.gpu, count, seconds);
  }
  Prediction FixedTerms(const WorkerTerms& workers, int memory_mib) const;
  // Not more than Predict gives with any option: `exchange_seconds` and `servers_price`, of a
  // second, are the least of the options, and every fee is left out. Requires Possible().
  Bound LeastOf(const WorkerTerms& workers, int memory_mib, double exchange_seconds,
                double servers_price) const;
  // What one iteration takes at least beside its compute time; `compute_seconds` = of the same
  // iteration, at the mean speed of the quota.
  double ExchangeSeconds(const WorkerTerms& workers, int memory_mib,
                         const AggregationOption& option, double compute_seconds) const;
  // Not more than ExchangeSeconds, whatever the compute time and the memory from `low_mib` to
  // `high_mib`.
  double LeastExchangeSeconds(int low_mib, int high_mib, const AggregationOption& option) const;

  void Split(const Box& box, const Ceiling& ceiling, std::vector<Box>* parts) override;
  Bound LowerBound(const Box& box, const Ceiling& ceiling) override;
  std::optional<Limit> Obstacle(const Choice& choice) override;
  Forecast Predict(const Choice& choice) override;
  bool FitsOnNodes(const Choice& choice) override;
  int OptionCount(int functions) override;
  PlanCandidate Describe(const Choice& choice, const Prediction& prediction) override;
  double NeededMib(int functions) override;
  bool BatchIsFull(const Choice& choice) override { return batches_.Shrinks(choice.functions); }

 private:
  // What is known of one n; the options once they are needed, since their trees take long.
  struct Numbered {
    int functions = 0;
    WorkerTerms workers;
    std::vector<AggregationOption> options;
    std::vector<double> least_exchange_seconds;  // of each option, whatever the memory
    double least_of_all_seconds = 0;             // of these
    double least_servers_price = 0;
    // Of the memory size last asked about.
    int fixed_mib = 0;
    Prediction fixed;
    double fixed_seconds = 0;  // their sum, without iterations
  };
  Numbered& At(int functions);
  Numbered& Listed(int functions);
  // At() with the terms of this size; Possible() is required.
  Numbered& Sized(int functions, int memory_mib);
  Bound LeastOfOption(const Choice& choice);
  Bound LeastOfChoice(const Choice& choice, const Ceiling& ceiling);
  const AggregationOption& OptionOf(const Choice& choice);
  double StoreShare(int functions) const;
  double StoreBandwidth(int functions, double memory_mib) const;
  double DirectBandwidth() const;
  ExchangeSpeeds SpeedsOf(const AggregationPlan& plan, int server_memory_mib) const;
  double MilliCpu(double memory_mib) const;
  double QuotaCores(double memory_mib) const;  // 0 = no quota
  // Of a core, for one thread: min(1, quota); 1 without quotas.
  double CoreShare(double memory_mib) const;
  double UnhinderedSeconds(const WorkerTerms& workers, int memory_mib,
                           double compute_seconds) const;
  // Of one exchange by itself, without and with what the CPU allows.
  double StoreSeconds(int memory_mib, const AggregationOption& option) const;
  double PipelinedSeconds(int memory_mib, const AggregationOption& option) const;
  // Of quota that is kept from one part of an iteration for another, at most.
  double KeptQuotaSeconds() const;
  // With what is read again: on the CPU beside everything else, and else while the worker computes.
  IterationTerms WithReread(const IterationTerms& terms, const WorkerTerms& workers, int memory_mib,
                            const AggregationOption& option, double compute_seconds) const;
  // Of a training sample, among those of a batch, and of a test sample, among its neighbours.
  SampleRead TrainingRead(const WorkerTerms& workers, int memory_mib) const;
  SampleRead TestRead(const WorkerTerms& workers, int memory_mib) const;
  // Requests of all workers to the data set's store, over the whole training.
  Bill DataRequests(const WorkerTerms& workers, int memory_mib, const RereadTerms& reread) const;
  // Of an iteration, where nobody tells readers.
  double RequestsInVain(const AggregationOption& option, const IterationTerms& terms) const;
  // Evaluations by which functions decide; none where they do not.
  double DecidingEvaluations() const;
  // Of an iteration: with what an exchange with a dedicated server adds to the step of one function
  // alone; `fixed_seconds` = kCompute of FixedTerms.
  double StepSeconds(const WorkerTerms& workers, int memory_mib, const AggregationOption& option,
                     double fixed_seconds) const;
  IterationTerms LeastIteration(const WorkerTerms& workers, int memory_mib,
                                const AggregationOption& option, double fixed_seconds) const;
  // Of an iteration as a whole: the lesser of its two.
  double LeastRunFactor(const AggregationOption& option) const;
  IterationTerms Iteration(const WorkerTerms& workers, int memory_mib,
                           const AggregationOption& option, double fixed_seconds) const;
  // Without what runs have shown.
  IterationTerms ModelledIteration(const WorkerTerms& workers, int memory_mib,
                                   const AggregationOption& option, double fixed_seconds) const;
  // `bill` (may be null): what the cost is the price of.
  std::optional<Prediction> Complete(const WorkerTerms& workers, int memory_mib,
                                     const AggregationOption& option, const Prediction& fixed,
                                     const IterationTerms& terms, Bill* bill) const;
  double ColdStartSeconds(int functions, double memory_mib) const;
  // Of one iteration beside samples / R.
  double OverheadSeconds(int functions, double memory_mib) const;

  const PlannerInput& input_;
  const double cores_;  // of all functions together; zero = not known
  // Of several streams at once; null = all share store_bytes_per_second_.
  const std::vector<WorkloadProfile::StorePoint>* const store_streams_;
  // The platform's, else what the profile saw of them; zero = not known.
  const double store_bytes_per_second_;
  const double store_request_seconds_;
  const RatesOfProfile rates_;
  const double deadline_deviations_;  // DeadlineDeviations
  const double least_run_factor_;     // of an iteration, whatever the plan
  Batches batches_;
  int64_t parameters_;
  const std::vector<int> memory_mib_;
  Numbered last_;  // the n last asked about
};

// Iterations between checkpoints: as many as fit into the interval, at least one; 0 = only where
// slices end (no interval).
int64_t CheckpointEvery(double interval_seconds, double iteration_seconds);

}  // namespace lambdadnn
