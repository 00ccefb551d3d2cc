// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/extended_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "common/plan/poll_schedule.h"
#include "common/plan/slice_cost.h"
#include "common/plan/sync_policy.h"
#include "common/plan/test_metrics.h"
#include "operator/planner/aggregation_space.h"
#include "operator/planner/hand_overs.h"
#include "operator/planner/iteration_simulation.h"
#include "operator/planner/node_packing.h"
#include "operator/planner/uncertainty.h"

namespace lambdadnn {
namespace {

constexpr double kMib = 1024.0 * 1024.0;
constexpr double kMilliPerCore = 1000;

// Of waits for objects, as runs on MinIO have it: the standard deviation in parts of the mean.
constexpr double kScatter = 0.05;
// What a slice keeps free for its end.
constexpr double kIterationsKeptFree =
    SyncPolicy::kStopSafetyFactor * SyncPolicy::kIterationsToStop;

// Memory on the platform's grid, at least its minimum. What no platform has stays what none has.
int OnGrid(const Platform::Memory& memory, double needed_mib) {
  constexpr double kMostMib = 1e9;
  const double steps = std::ceil((needed_mib - memory.min_mib) / memory.step_mib);
  const double mib = memory.min_mib + memory.step_mib * std::max(0.0, steps);
  return static_cast<int>(std::min(mib, kMostMib));
}

double Smallest(double a, double b) {  // of two bandwidths of which zero is unlimited
  if (a <= 0) return b;
  return b <= 0 ? a : std::min(a, b);
}

// Those that push and pull at once: not the one that has the only server.
int TransferringWorkers(const AggregationPlan& plan) {
  const bool one_serves = plan.placement == Placement::kWorkers && plan.servers() == 1;
  return plan.workers() - (one_serves && plan.workers() > 1 ? 1 : 0);
}

// What somebody states of a store counts before what the profile saw through the functions' own
// transport, and that before what a probe measured with one request at a time.
double OfStore(const OptionalQuantity& platform, const OptionalQuantity& profile) {
  return platform.stated() || !profile.known() ? platform : profile;
}

const std::vector<WorkloadProfile::StorePoint>* StreamsOf(const PlannerInput& input) {
  const bool counts =
      !input.profile.store_streams.empty() && !input.platform.store_bytes_per_second.stated();
  return counts ? &input.profile.store_streams : nullptr;
}

// What the profile measures of exchanges through a store has these in it; what somebody states of a
// store is of a request alone.
PollCost QuestionsInVain(const PlannerInput& input, TransportKind transport) {
  if (transport == TransportKind::kDirect) return {};
  return input.platform.store_request_seconds.stated() ? input.profile.miss : PollCost{};
}

// A worker's share of the training and of the test set.
double LoadedSamples(const WorkloadProfile& profile, int functions) {
  return (static_cast<double>(profile.training_samples) + profile.evaluation_samples) / functions;
}

}  // namespace

int64_t CheckpointEvery(double interval_seconds, double iteration_seconds) {
  if (interval_seconds <= 0) return 0;
  if (iteration_seconds <= 0) return 1;
  const double iterations = std::floor(interval_seconds / iteration_seconds);
  return static_cast<int64_t>(std::clamp(iterations, 1.0, 1e15));
}

ExtendedModel::ExtendedModel(const PlannerInput& input, std::vector<int> memory_mib)
    : input_(input),
      cores_(CoresOf(input.platform)),
      store_streams_(StreamsOf(input)),
      store_bytes_per_second_(store_streams_ != nullptr
                                  ? store_streams_->back().bytes_per_second
                                  : OfStore(input.platform.store_bytes_per_second,
                                            input.profile.store_bytes_per_second)),
      store_request_seconds_(
          OfStore(input.platform.store_request_seconds, input.profile.store_request_seconds)),
      rates_(input.profile),
      deadline_deviations_(DeadlineDeviations(input.objective)),
      least_run_factor_(input.profile.run.Least()),
      batches_(input),
      parameters_(ParametersOf(input)),
      memory_mib_(std::move(memory_mib)) {}

Status ExtendedModel::Validate(const PlannerInput& input) {
  if (const auto spread = input.aggregation.spread; spread && !HasShardsFor(input, *spread)) {
    return InvalidArgumentError("aggregation.spread is " + std::to_string(*spread) +
                                ", which divides no number of shards that is tried for this model; "
                                "give aggregation.shards as well");
  }
  if (input.aggregation.placement == Placement::kWorkers && input.aggregation.server_memory_mib) {
    return InvalidArgumentError(
        "aggregation.serverMemory is of dedicated servers, and with placement Workers there are "
        "none; leave one of them out");
  }
  return OkStatus();
}

double ExtendedModel::MilliCpu(double memory_mib) const {
  return memory_mib * input_.platform.milli_cpu_per_gib / kMibPerGib;
}

double ExtendedModel::QuotaCores(double memory_mib) const {
  return MilliCpu(memory_mib) / kMilliPerCore;
}

double ExtendedModel::CoreShare(double memory_mib) const {
  const double quota = QuotaCores(memory_mib);
  return quota > 0 ? std::min(1.0, quota) : 1;
}

double ExtendedModel::OverheadSeconds(int functions, double memory_mib) const {
  const WorkloadProfile& profile = input_.profile;
  // What a function alone hands on stays in its memory, but for a dedicated server's (StepSeconds).
  const double disturbed = functions > 1 ? profile.disturbed_cpu_seconds : 0;
  return profile.iteration_overhead_seconds +
         (profile.iteration_cpu_seconds + disturbed) / CoreShare(memory_mib);
}

double ExtendedModel::ColdStartSeconds(int functions, double memory_mib) const {
  return input_.profile.cold_start_seconds +
         StartSlowdown(input_.platform, functions, CoreShare(memory_mib)) *
             input_.profile.start_cpu_seconds +
         PodStartSeconds(input_.platform, functions);
}

// Of one of so many that transfer at once.
double ExtendedModel::StoreShare(int functions) const {
  const double in_all = store_streams_ != nullptr ? BytesPerSecondOf(*store_streams_, functions)
                                                  : store_bytes_per_second_;
  return in_all / functions;
}

// min(α2 m + β2, B_s(n) / n); zero = unlimited, negative = this memory gives none.
double ExtendedModel::StoreBandwidth(int functions, double memory_mib) const {
  const Platform& platform = input_.platform;
  const double share = StoreShare(functions);
  if (platform.function_store_slope == 0 && platform.function_store_intercept == 0) return share;
  const double own = platform.function_store_slope * memory_mib + platform.function_store_intercept;
  return own <= 0 ? -1 : Smallest(own, share);
}

WorkerTerms ExtendedModel::Workers(int functions) const {
  const WorkloadProfile& profile = input_.profile;
  const int64_t samples = profile.training_samples;
  WorkerTerms terms;
  terms.functions = functions;
  terms.global_batch = static_cast<int>(std::min<int64_t>(batches_.Global(functions), samples));
  const auto local = [&](int64_t batch) {
    const int64_t largest = (batch + functions - 1) / functions;
    return static_cast<double>(largest);
  };
  terms.local_batch = local(terms.global_batch);
  terms.iterations_per_epoch = (samples + terms.global_batch - 1) / terms.global_batch;
  const int64_t last = samples - (terms.iterations_per_epoch - 1) * terms.global_batch;
  const double epoch_samples =
      static_cast<double>(terms.iterations_per_epoch - 1) * terms.local_batch + local(last);

  const double whole_epochs = std::floor(input_.limits.epochs);
  const double rest = std::ceil((input_.limits.epochs - whole_epochs) *
                                static_cast<double>(terms.iterations_per_epoch));
  terms.iterations =
      static_cast<int64_t>(whole_epochs * static_cast<double>(terms.iterations_per_epoch) + rest);
  terms.samples = whole_epochs * epoch_samples + rest * terms.local_batch;

  terms.memory = WorkerMemoryOf(profile, parameters_, terms.local_batch, functions, input_.limits);
  terms.loaded_samples = LoadedSamples(profile, functions);
  terms.evaluated_samples = profile.evaluation_samples *
                            EvaluationsIn(input_.limits.epochs, input_.limits.evaluate_every) /
                            functions;
  return terms;
}

// As of a store: a byte goes up and down again.
double ExtendedModel::DirectBandwidth() const {
  return Smallest(input_.platform.function_network_bytes_per_second.Or(0),
                  2 * DirectOf(input_.profile).bytes_per_second);
}

ExchangeSpeeds ExtendedModel::SpeedsOf(const AggregationPlan& plan, int server_memory_mib) const {
  const bool hosted = plan.placement == Placement::kWorkers;
  ExchangeSpeeds speeds;
  if (plan.transport == TransportKind::kDirect) {
    speeds.server_bytes_per_second = DirectBandwidth();
    // A hand-over is a push and a pull.
    speeds.request_seconds = DirectOf(input_.profile).hop_seconds / 2;
    speeds.root_sends_to_each = true;
  } else {
    // Where workers serve, leaves of all groups read at once.
    speeds.server_bytes_per_second =
        hosted ? StoreShare(std::min(plan.workers(), plan.spread * plan.Width(1)))
               : std::max(StoreBandwidth(1, server_memory_mib), 0.0);
    speeds.store_bytes_per_second = store_bytes_per_second_;
    speeds.request_seconds = store_request_seconds_;
  }
  // What workers merge is among the CPU time of their function.
  speeds.merge_bytes_per_second = hosted ? 0.0 : input_.profile.merge_bytes_per_second.Or(0);
  if (!hosted && input_.platform.milli_cpu_per_gib > 0) {
    speeds.merge_bytes_per_second *= std::min(1.0, MilliCpu(server_memory_mib) / kMilliPerCore);
  }
  return speeds;
}

AggregationOption ExtendedModel::Option(const AggregationPlan& plan) const {
  const Platform& platform = input_.platform;
  AggregationOption option;
  option.plan = plan;
  option.servers = plan.server_functions();
  const bool hosted = plan.placement == Placement::kWorkers;
  option.worker_mib = ExchangeMibOfWorker(plan, parameters_, input_.limits);
  if (hosted) {
    option.server_memory_mib = 0;
  } else if (input_.aggregation.server_memory_mib) {
    option.server_memory_mib = *input_.aggregation.server_memory_mib;
  } else {
    double needed = NeededServerMib(plan, parameters_, input_.limits);
    if (platform.milli_cpu_per_gib > 0) {
      needed = std::max(needed, kLeastServerMilliCpu / platform.milli_cpu_per_gib * kMibPerGib);
    }
    needed = std::max<double>(needed, input_.aggregation.least_server_memory_mib);
    option.server_memory_mib = OnGrid(platform.memory, needed);
  }
  option.servers_mib = option.servers * (option.server_memory_mib + platform.sidecar_memory_mib);
  option.second_price = PriceOf(
      platform.prices, FunctionBill(platform, option.server_memory_mib, 0, option.servers, 1));
  option.servers_milli_cpu = option.servers * MilliCpu(option.server_memory_mib);

  const ExchangeShape shape{plan, parameters_, input_.limits.clip_by_global_norm,
                            platform.block_elements};
  const ExchangeSpeeds speeds = SpeedsOf(plan, option.server_memory_mib);
  // One function alone exchanges nothing.
  if (!hosted || plan.workers() > 1) {
    option.stages = StagesOf(shape, speeds);
    option.straggler_seconds = StragglerSeconds(input_, plan);
    option.unhindered_straggler_seconds = UnhinderedStragglerSeconds(input_, plan);
  }
  option.cpu = ExchangeCpuOf(shape, rates_.Of(plan));
  option.run_factor = OrOne(input_.profile.run.ExchangeOf(plan));
  option.server_core_share = hosted ? 1 : CoreShare(option.server_memory_mib);
  if (platform.prices.put_request > 0 || platform.prices.get_request > 0) {
    option.requests = IterationCost(shape);
    option.request_price =
        PriceOf(platform.prices, {.put_requests = static_cast<double>(option.requests.puts),
                                  .get_requests = static_cast<double>(option.requests.gets)});
  }
  return option;
}

std::vector<AggregationOption> ExtendedModel::Options(int functions) const {
  std::vector<AggregationOption> options;
  for (const AggregationPlan& plan : AggregationOptions(input_, functions)) {
    options.push_back(Option(plan));
  }
  return options;
}

bool ExtendedModel::Possible(const WorkerTerms& workers, int memory_mib) const {
  return input_.profile.training_rate.At(memory_mib) > 0 &&
         StoreBandwidth(workers.functions, memory_mib) >= 0;
}

std::optional<Limit> ExtendedModel::Check(const WorkerTerms& workers, int memory_mib,
                                          const AggregationOption& option) const {
  const Platform& platform = input_.platform;
  if (memory_mib < workers.memory.least_mib() + option.worker_mib ||
      !Possible(workers, memory_mib)) {
    return Limit::kMemory;
  }
  const double n = workers.functions;
  if (platform.total_milli_cpu > 0 &&
      n * MilliCpu(memory_mib) + option.servers_milli_cpu > platform.total_milli_cpu) {
    return Limit::kQuota;
  }
  if (platform.total_memory_mib > 0 &&
      n * (memory_mib + platform.sidecar_memory_mib) + option.servers_mib >
          platform.total_memory_mib) {
    return Limit::kQuota;
  }
  if (workers.functions + option.servers > platform.max_functions) return Limit::kFunctions;
  return std::nullopt;
}

bool ExtendedModel::FitsNodes(const WorkerTerms& workers, int memory_mib,
                              const AggregationOption& option) const {
  const Platform& platform = input_.platform;
  if (platform.nodes.empty()) return true;
  const auto pods = [&](int count, double mib, int gpu) {
    // A function's CPU is a whole number of mCPU.
    return PodGroup{count, mib + platform.machine_sidecar_memory_mib,
                    std::round(MilliCpu(mib)) + platform.machine_sidecar_milli_cpu,
                    static_cast<double>(gpu)};
  };
  return FitOnNodes(platform.nodes, pods(workers.functions, memory_mib, input_.limits.gpu),
                    pods(option.servers, option.server_memory_mib, 0));
}

double ExtendedModel::StoreSeconds(int memory_mib, const AggregationOption& option) const {
  ExchangeStages stages = option.stages;
  const bool direct = option.plan.transport == TransportKind::kDirect;
  const double bandwidth =
      direct ? DirectBandwidth() : StoreBandwidth(TransferringWorkers(option.plan), memory_mib);
  stages.worker_seconds_per_byte = bandwidth > 0 ? 1 / bandwidth : 0;
  return stages.PipelinedSeconds();
}

double ExtendedModel::PipelinedSeconds(int memory_mib, const AggregationOption& option) const {
  return std::max(StoreSeconds(memory_mib, option),
                  option.cpu.worker_seconds + option.cpu.server_seconds);
}

// All compute at once and share the cores: a function may use the quota that it has not used while
// it waited.
double ExtendedModel::UnhinderedSeconds(const WorkerTerms& workers, int memory_mib,
                                        double compute_seconds) const {
  const double share = CoreShare(memory_mib);
  const double crowd = cores_ > 0 ? std::max(1.0, workers.functions / cores_) : 1 / share;
  return std::min(1 / share, crowd) * (compute_seconds * share);
}

// When a step begins, a period's quota and the burst's may be there; the next period may begin at
// once.
double ExtendedModel::KeptQuotaSeconds() const {
  return 2 * input_.platform.cpu_period_seconds + input_.platform.cpu_burst_seconds;
}

double ExtendedModel::ExchangeSeconds(const WorkerTerms& workers, int memory_mib,
                                      const AggregationOption& option,
                                      double compute_seconds) const {
  const double share = CoreShare(memory_mib);
  const double step_cpu = compute_seconds * share;
  const double worker_cpu = option.cpu.worker_seconds;
  const double n = workers.functions;
  const double unhindered = UnhinderedSeconds(workers, memory_mib, compute_seconds);
  const double pipelined = PipelinedSeconds(memory_mib, option);
  double iteration =
      std::max(unhindered + pipelined + option.unhindered_straggler_seconds,
               compute_seconds + pipelined + option.straggler_seconds - KeptQuotaSeconds());
  // No function gets more than its quota, and all of them not more than the machine.
  iteration = std::max(iteration, (step_cpu + worker_cpu) / share);
  if (option.server_core_share < 1) {
    iteration = std::max(iteration, option.cpu.server_seconds / option.server_core_share);
  }
  if (cores_ > 0) {
    iteration = std::max(
        iteration,
        (n * (step_cpu + worker_cpu) + option.servers * option.cpu.server_seconds) / cores_);
  }
  // Less is what rounding leaves of nothing.
  constexpr double kLeastShare = 1e-12;
  const double exchange = iteration - compute_seconds;
  return exchange > kLeastShare * iteration ? exchange : 0;
}

double ExtendedModel::LeastExchangeSeconds(int low_mib, int high_mib,
                                           const AggregationOption& option) const {
  const double low = CoreShare(low_mib);
  const double high = CoreShare(high_mib);
  const double wait =
      std::min(PipelinedSeconds(low_mib, option), PipelinedSeconds(high_mib, option));
  // Without a quota nothing is kept.
  const double kept = std::min(low, high) < 1 ? KeptQuotaSeconds() : 0;
  return std::max(option.cpu.worker_seconds / std::max(low, high), wait - kept);
}

double ExtendedModel::StepSeconds(const WorkerTerms& workers, int memory_mib,
                                  const AggregationOption& option, double fixed_seconds) const {
  const bool exchanges = workers.functions == 1 && option.plan.placement == Placement::kDedicated;
  return fixed_seconds +
         (exchanges ? input_.profile.disturbed_cpu_seconds / CoreShare(memory_mib) : 0);
}

IterationTerms ExtendedModel::LeastIteration(const WorkerTerms& workers, int memory_mib,
                                             const AggregationOption& option,
                                             double fixed_seconds) const {
  const double compute_seconds = StepSeconds(workers, memory_mib, option, fixed_seconds);
  const IterationTerms terms =
      WithReread({compute_seconds, ExchangeSeconds(workers, memory_mib, option, compute_seconds)},
                 workers, memory_mib, option, compute_seconds);
  // Which of the two a stall is in is not bounded.
  const double least = LeastRunFactor(option);
  return {terms.compute * least, terms.exchange * least};
}

double ExtendedModel::LeastRunFactor(const AggregationOption& option) const {
  return std::min(OrOne(input_.profile.run.compute), option.run_factor);
}

IterationTerms ExtendedModel::Iteration(const WorkerTerms& workers, int memory_mib,
                                        const AggregationOption& option,
                                        double fixed_seconds) const {
  const IterationTerms modelled = ModelledIteration(workers, memory_mib, option, fixed_seconds);
  return {modelled.compute * OrOne(input_.profile.run.compute),
          modelled.exchange * option.run_factor};
}

IterationTerms ExtendedModel::ModelledIteration(const WorkerTerms& workers, int memory_mib,
                                                const AggregationOption& option,
                                                double fixed_seconds) const {
  const double compute_seconds = StepSeconds(workers, memory_mib, option, fixed_seconds);
  const IterationTerms least = {compute_seconds,
                                ExchangeSeconds(workers, memory_mib, option, compute_seconds)};
  const double share = CoreShare(memory_mib);
  if (share >= 1 && option.server_core_share >= 1) {
    return WithReread(least, workers, memory_mib, option, compute_seconds);
  }
  const ExchangeCpu& cpu = option.cpu;
  const double levels = option.plan.server_layers();
  const double cpu_seconds = cpu.worker_push + cpu.worker_pull +
                             levels * (cpu.server_child + cpu.server_push) + cpu.server_update;
  const double waits = StoreSeconds(memory_mib, option) - cpu_seconds;
  const SimulatedIteration simulated =
      SimulateIteration(option.plan,
                        {.step_cpu = compute_seconds * share,
                         .exchange = cpu,
                         .hop = std::max(0.0, waits) / (levels + 1),
                         .straggler = option.straggler_seconds,
                         .miss = QuestionsInVain(input_, option.plan.transport)},
                        {.worker_share = share,
                         .server_share = option.server_core_share,
                         .period_seconds = input_.platform.cpu_period_seconds,
                         .burst_seconds = input_.platform.cpu_burst_seconds,
                         .cores = cores_});
  const double seconds = std::max(simulated.seconds, least.compute + least.exchange);
  const double compute = std::min(simulated.compute_seconds, seconds);
  return WithReread({compute, seconds - compute}, workers, memory_mib, option, compute_seconds);
}

// Workers wait for weights as long as the exchange takes, servers for the next gradients as long as
// an iteration; shards come one after the other.
double ExtendedModel::RequestsInVain(const AggregationOption& option,
                                     const IterationTerms& terms) const {
  const double miss = input_.profile.miss.seconds;
  if (miss <= 0 || option.requests.gets == 0) return 0;
  const AggregationPlan& plan = option.plan;
  const int kept = plan.placement == Placement::kWorkers ? 1 : 0;  // beside its root
  const double weights = (plan.workers() - kept) * plan.shards;
  const double gradients = static_cast<double>(option.requests.gets) - weights;
  const double to_mean_shard = terms.exchange * (plan.shards + 1) / (2.0 * plan.shards);
  const auto misses = [&](double wait) { return ExpectedMisses(wait, kScatter * wait, miss); };
  return weights * misses(to_mean_shard) + gradients * misses(terms.compute + to_mean_shard);
}

Prediction ExtendedModel::FixedTerms(const WorkerTerms& workers, int memory_mib) const {
  const WorkloadProfile& profile = input_.profile;
  const double n = workers.functions;
  const double bandwidth = StoreBandwidth(workers.functions, memory_mib);
  const double share = CoreShare(memory_mib);
  Prediction terms;
  terms.iterations = workers.iterations;
  terms[Term::kColdStart] = ColdStartSeconds(workers.functions, memory_mib);
  terms[Term::kLoad] = store_request_seconds_ +
                       (bandwidth > 0 ? profile.training_bytes / (n * bandwidth) : 0) +
                       workers.loaded_samples * profile.load_cpu_seconds_per_sample / share;
  terms[Term::kCompute] = workers.samples / profile.training_rate.At(memory_mib) /
                              static_cast<double>(workers.iterations) +
                          OverheadSeconds(workers.functions, memory_mib);
  const double evaluation_rate = profile.evaluation_rate.At(memory_mib);
  if (evaluation_rate > 0) {
    terms[Term::kEvaluation] =
        workers.evaluated_samples / evaluation_rate * OrOne(profile.run.evaluation);
  }
  // The last one is waited for.
  terms[Term::kCheckpoint] = profile.checkpoint_seconds + profile.finish_cpu_seconds / share;
  terms[Term::kRelease] = profile.release_seconds;
  return terms;
}

std::optional<Prediction> ExtendedModel::Predict(const WorkerTerms& workers, int memory_mib,
                                                 const AggregationOption& option) const {
  return Predict(workers, memory_mib, option, FixedTerms(workers, memory_mib));
}

std::optional<Prediction> ExtendedModel::Predict(const WorkerTerms& workers, int memory_mib,
                                                 const AggregationOption& option,
                                                 const Prediction& fixed) const {
  return Complete(workers, memory_mib, option, fixed,
                  Iteration(workers, memory_mib, option, fixed[Term::kCompute]), nullptr);
}

std::optional<Prediction> ExtendedModel::LeastPrediction(const WorkerTerms& workers, int memory_mib,
                                                         const AggregationOption& option,
                                                         const Prediction& fixed) const {
  return Complete(workers, memory_mib, option, fixed,
                  LeastIteration(workers, memory_mib, option, fixed[Term::kCompute]), nullptr);
}

std::optional<Prediction> ExtendedModel::Complete(const WorkerTerms& workers, int memory_mib,
                                                  const AggregationOption& option,
                                                  const Prediction& fixed,
                                                  const IterationTerms& terms, Bill* bill) const {
  const WorkloadProfile& profile = input_.profile;
  const Platform& platform = input_.platform;
  const auto iterations = static_cast<double>(workers.iterations);
  Prediction prediction = fixed;
  // Dedicated servers begin beside the workers, and hardly compute.
  prediction[Term::kColdStart] += PodStartSeconds(platform, workers.functions + option.servers) -
                                  PodStartSeconds(platform, workers.functions);
  prediction[Term::kCompute] = terms.compute;
  prediction[Term::kCommunication] = terms.exchange;
  // Nothing is read ahead while test samples are evaluated.
  const RereadTerms reread = Reread(workers, memory_mib, option);
  if (const double samples = reread.test_part * workers.evaluated_samples; samples > 0) {
    const SampleRead read = TestRead(workers, memory_mib);
    prediction[Term::kEvaluation] +=
        samples * (read.cpu_seconds / CoreShare(memory_mib) + read.wait_seconds);
  }
  // Each worker writes its part of a decision; who reads them makes nobody wait.
  const double decisions = DecidingEvaluations();
  prediction[Term::kEvaluation] += decisions * store_request_seconds_;
  const double iteration = prediction.IterationSeconds();
  const int64_t every = CheckpointEvery(input_.options.checkpoint_interval_seconds, iteration);
  // Before the last one, beside iterations; those of the best models, too.
  const double of_best = input_.limits.keep_best ? std::max(0.0, decisions - 1) : 0;
  const double checkpoints =
      static_cast<double>(every > 0 ? (workers.iterations - 1) / every : 0) + of_best;
  const double share = option.plan.placement == Placement::kWorkers ? CoreShare(memory_mib)
                                                                    : option.server_core_share;
  prediction[Term::kCheckpoint] += checkpoints * profile.checkpoint_cpu_seconds / share;

  double slices = 1;
  if (platform.function_timeout_seconds > 0) {
    // With time for less than one iteration a slice makes no progress. The first one, and that of
    // a function which replaces another, loads the data.
    const double overhead = profile.slice_overhead_seconds;
    const double usable = platform.function_timeout_seconds - overhead - prediction[Term::kLoad] -
                          kIterationsKeptFree * iteration;
    if (usable < iteration) return std::nullopt;
    slices = std::max(1.0, std::ceil(prediction.BusySeconds(iterations) / usable));
    prediction[Term::kSliceOverhead] = (slices - 1) * overhead;
  }
  prediction.seconds = prediction.TotalSeconds(iterations);
  AddDeviations(DeviationSharesOf(profile, CoreShare(memory_mib)), iterations, &prediction);

  // What PriceOf the bill gives, in the multiplications that a search can afford.
  const double second_price =
      PriceOf(platform.prices, WorkersBill(memory_mib, workers.functions, 1)) + option.second_price;
  Bill others = SliceRequests(option.plan, {.slices = slices,
                                            .checkpoints = checkpoints,
                                            .kept_checkpoints = input_.options.checkpoints_kept,
                                            .keeps_best = input_.limits.keep_best});
  others.put_requests += decisions * workers.functions;
  others.get_requests += decisions * workers.functions;
  others += DataRequests(workers, memory_mib, reread);
  others.get_requests += iterations * RequestsInVain(option, terms);
  const double invocations = slices * (workers.functions + option.servers);
  prediction.cost = second_price * prediction.seconds + iterations * option.request_price +
                    PriceOf(platform.prices, others) + invocations * platform.prices.invocation;
  if (bill != nullptr) {
    *bill = WorkersBill(memory_mib, workers.functions, prediction.seconds);
    *bill +=
        FunctionBill(platform, option.server_memory_mib, 0, option.servers, prediction.seconds);
    bill->put_requests = iterations * static_cast<double>(option.requests.puts);
    bill->get_requests = iterations * static_cast<double>(option.requests.gets);
    bill->invocations = invocations;
    *bill += others;
  }
  return prediction;
}

Bound ExtendedModel::LeastOf(const WorkerTerms& workers, int memory_mib, double exchange_seconds,
                             double servers_price) const {
  Prediction least = FixedTerms(workers, memory_mib);
  least[Term::kCompute] *= least_run_factor_;
  least[Term::kCommunication] = exchange_seconds * least_run_factor_;
  const Platform& platform = input_.platform;
  const auto iterations = static_cast<double>(workers.iterations);
  least.seconds = least.TotalSeconds(iterations);
  AddDeviations(DeviationSharesOf(input_.profile, CoreShare(memory_mib)), iterations, &least);
  const double price =
      PriceOf(platform.prices, WorkersBill(memory_mib, workers.functions, 1)) + servers_price;
  return {least.SecondsAt(deadline_deviations_) * kBoundSlack, price * least.seconds * kBoundSlack};
}

}  // namespace lambdadnn
