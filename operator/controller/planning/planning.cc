// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning/planning.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/text.h"
#include "common/plan_json/plan_json.h"
#include "operator/api/peer_channel.h"
#include "operator/controller/planning/unmeasured_plan.h"
#include "operator/planner/extended_model.h"
#include "operator/resources/slice_requests.h"
#include "operator/resources/training_config_builder.h"

namespace lambdadnn {
namespace {

// As many as status.planHistory may have.
constexpr size_t kMaxPlanRecords = 64;

int64_t PerEpoch(const ExecutionPlan& plan) {
  return std::max<int64_t>(1, plan.iterations_per_epoch);
}

int64_t EpochsOf(const JobSpec& spec) {
  return static_cast<int64_t>(std::ceil(spec.training.epochs));
}

std::optional<WallTime> CreationOf(const Job& job) {
  WallTime created;
  if (!ParseRfc3339(job.metadata.creation_timestamp, &created)) return std::nullopt;
  return created;
}

bool AtEpochBegin(const Plan& plan, int64_t iteration) {
  return plan.iterations_per_epoch <= 0 || iteration % plan.iterations_per_epoch == 0;
}

OptionalQuantity Slower(const OptionalQuantity& rate, double factor) {
  return rate.known() ? OptionalQuantity(rate / factor, rate.origin()) : rate;
}

void Slow(TrainingRate* rate, double factor) {
  rate->slope /= factor;
  rate->intercept /= factor;
  for (TrainingRate::Point& point : rate->table) point.samples_per_second /= factor;
  if (rate->max_samples_per_second) *rate->max_samples_per_second /= factor;
}

void SlowExchange(double factor, WorkloadProfile* profile, Platform* platform) {
  for (double* const seconds :
       {&profile->transfer.push_seconds, &profile->transfer.push_seconds_per_byte,
        &profile->transfer.pull_seconds, &profile->transfer.pull_seconds_per_byte,
        &profile->update_cpu_seconds_per_byte, &profile->direct.cpu.push_seconds,
        &profile->direct.cpu.push_seconds_per_byte, &profile->direct.cpu.pull_seconds,
        &profile->direct.cpu.pull_seconds_per_byte, &profile->direct.send_seconds,
        &profile->direct.send_seconds_per_byte, &profile->direct.hop_seconds,
        &profile->direct.deviation_seconds, &profile->direct.pair_wait_seconds,
        &profile->doorbell.send_seconds, &profile->doorbell.receive_seconds, &profile->miss.seconds,
        &profile->miss.cpu_seconds, &profile->store_deviation_seconds}) {
    *seconds *= factor;
  }
  for (HostCpu* const host : {&profile->host, &profile->store_host}) {
    for (double HostCpu::* const seconds :
         {&HostCpu::alone_seconds, &HostCpu::pair_seconds, &HostCpu::pair_seconds_per_byte,
          &HostCpu::four_seconds, &HostCpu::four_seconds_per_byte, &HostCpu::worker_seconds,
          &HostCpu::worker_seconds_per_byte, &HostCpu::server_seconds,
          &HostCpu::server_seconds_per_byte, &HostCpu::server_of_three_seconds,
          &HostCpu::server_of_three_seconds_per_byte}) {
      host->*seconds *= factor;
    }
  }
  for (OptionalQuantity* const seconds :
       {&profile->store_request_seconds, &platform->store_request_seconds}) {
    *seconds = Slower(*seconds, 1 / factor);
  }
  for (OptionalQuantity* const rate :
       {&profile->merge_bytes_per_second, &profile->store_bytes_per_second,
        &platform->store_bytes_per_second, &platform->function_network_bytes_per_second,
        &platform->parameter_server_network_bytes_per_second}) {
    *rate = Slower(*rate, factor);
  }
  profile->direct.bytes_per_second /= factor;
  for (WorkloadProfile::StorePoint& point : profile->store_streams) {
    point.bytes_per_second /= factor;
  }
  platform->function_store_slope /= factor;
  platform->function_store_intercept /= factor;
}

}  // namespace

double SecondsSinceCreation(const Job& job, const JobSpent& spent) {
  const std::optional<WallTime> created = CreationOf(job);
  // Clocks of several machines: it has existed for as long as it was active, at least.
  return created ? std::max(spent.active_seconds, ToSeconds(spent.wall - *created))
                 : spent.active_seconds;
}

namespace {

// Until the objective's deadline; below zero once it has passed.
std::optional<double> TimeLeft(const Job& job, const JobSpent& spent) {
  const Objective& objective = job.spec.objective;
  if (objective.finish_by) {
    // As real numbers: further apart than a Duration is long, they would overflow it.
    return ToSeconds(objective.finish_by->time_since_epoch()) -
           ToSeconds(spent.wall.time_since_epoch());
  }
  if (!objective.deadline_seconds) return std::nullopt;
  return *objective.deadline_seconds - SecondsSinceCreation(job, spent);
}

}  // namespace

std::string FinishByInThePast(const Job& job, WallTime wall) {
  const std::optional<WallTime>& finish_by = job.spec.objective.finish_by;
  const std::optional<WallTime> created = CreationOf(job);
  const WallTime from = created.value_or(wall);
  if (!finish_by || *finish_by > from) return "";
  return "spec.objective.finishBy is " + FormatRfc3339(*finish_by) + ", in the past when the job " +
         (created ? "was created (" + FormatRfc3339(from) + ")" : "begins") +
         "; give a time that is still to come";
}

void Correct(const TimeFactors& factors, PlannerInput* input) {
  if (factors == TimeFactors{}) return;
  WorkloadProfile& profile = input->profile;
  Slow(&profile.training_rate, factors.compute);
  Slow(&profile.evaluation_rate, factors.compute * factors.evaluation);
  profile.iteration_overhead_seconds *= factors.compute;
  profile.iteration_cpu_seconds *= factors.compute;
  profile.disturbed_cpu_seconds *= factors.compute;
  SlowExchange(factors.exchange, &profile, &input->platform);
  profile.cold_start_seconds *= factors.start;
  profile.start_cpu_seconds *= factors.start;
  profile.load_cpu_seconds_per_sample *= factors.start;
}

double RemainingCost(const JobStatus& status, const Platform& platform, int64_t iteration,
                     double seconds) {
  const Plan& plan = *status.plan;
  Bill second = FunctionBill(platform, plan.memory_mib, plan.gpu, plan.functions, 1);
  second +=
      FunctionBill(platform, plan.server_memory_mib, 0, plan.aggregation.server_functions(), 1);
  const double second_price = PriceOf(platform.prices, second);
  PredictedFrom before;
  if (!status.plan_history.empty()) before = status.plan_history.back().prediction_begin();
  const double beside =
      plan.predicted.cost - before.cost - second_price * (plan.predicted.seconds - before.seconds);
  const auto of = static_cast<double>(std::max<int64_t>(1, plan.predicted.iterations));
  const auto left = static_cast<double>(std::max<int64_t>(0, plan.iterations - iteration));
  return second_price * seconds + std::max(0.0, beside) / of * left;
}

std::optional<double> SecondsToDeadline(const Job& job, const JobSpent& spent) {
  constexpr double kPassed = 0.001;
  const std::optional<double> left = TimeLeft(job, spent);
  return left ? std::optional(std::max(kPassed, *left)) : std::nullopt;
}

PlannerInput PlannerInputOf(const Job& job, const Platform& platform, const JobSpent& spent,
                            bool explain) {
  LDNN_CHECK(job.status.profile.has_value(), "planning needs a profile");
  PlannerInput input;
  input.profile = *job.status.profile;
  input.platform = platform;
  input.limits = BuildTrainingLimits(job.spec);
  input.objective = job.spec.objective;
  input.elapsed_seconds = SecondsSinceCreation(job, spent);
  input.spent = spent.money;
  Objective& objective = input.objective;
  if (const auto left = TimeLeft(job, spent)) {
    input.whole_deadline_seconds =
        objective.deadline_seconds.value_or(*left + input.elapsed_seconds);
    objective.deadline_seconds = SecondsToDeadline(job, spent);
  }
  if (input.objective.budget.has_value()) {
    input.objective.budget = std::max(1e-12, *input.objective.budget - spent.money);
  }
  const AggregationSpec& spec = job.spec.aggregation;
  input.aggregation.transport = spec.transport;
  if (ConnectsFunctions(job.spec)) {
    input.profile.miss = {};  // readers are told
  } else {
    input.profile.doorbell = {};
    input.aggregation.transport = TransportKind::kObjectStore;
  }
  input.aggregation.placement = spec.placement;
  input.aggregation.shards = spec.shards;
  input.aggregation.layers = spec.layers;
  input.aggregation.spread = spec.spread;
  input.aggregation.server_memory_mib = spec.server_memory_mib;
  const ExecutionStatus& execution = job.status.execution;
  input.aggregation.least_server_memory_mib =
      LeastMemoryMib(platform, execution.too_small_server_mib);
  if (const int least = LeastMemoryMib(platform, execution.too_small_worker_mib); least > 0) {
    std::optional<int>& bound = input.limits.min_memory_mib;
    bound = std::max(bound.value_or(0), least);
  }
  input.options.checkpoint_interval_seconds = job.spec.checkpoint.interval_seconds;
  input.options.checkpoints_kept = std::max(1, job.spec.checkpoint.keep);
  input.options.explain = explain;
  Correct(execution.corrections, &input);
  return input;
}

PlannedInputs PlannedInputsOf(const JobSpec& spec, const ExecutionStatus& execution) {
  return {spec.objective,
          spec.functions,
          spec.aggregation,
          EpochsOf(spec),
          execution.too_small_worker_mib,
          execution.too_small_server_mib};
}

int LeastMemoryMib(const Platform& platform, int too_small_mib) {
  if (too_small_mib <= 0) return 0;
  const int step = std::max(1, platform.memory.step_mib);
  const int wanted = too_small_mib + std::max(step, too_small_mib / 4);
  const int above = std::max(0, wanted - platform.memory.min_mib);
  return platform.memory.min_mib + (above + step - 1) / step * step;
}

bool MayGrow(const Job& job, const Platform& platform, bool workers, int memory_mib,
             std::string* field) {
  const JobSpec& spec = job.spec;
  int most = platform.memory.max_mib;
  *field = "the platform's largest memory";
  if (workers && spec.objective.fixed.has_value()) {
    most = spec.objective.fixed->memory_mib;
    *field = "spec.objective.fixed.memory";
  } else if (workers && spec.functions.memory_max_mib.value_or(most) < most) {
    most = *spec.functions.memory_max_mib;
    *field = "spec.functions.memory.max";
  } else if (!workers && spec.aggregation.server_memory_mib.has_value()) {
    most = *spec.aggregation.server_memory_mib;
    *field = "spec.aggregation.serverMemory";
  }
  return LeastMemoryMib(platform, memory_mib) <= most;
}

std::string TooSmall(const Job& job, const Plan& plan) {
  const ExecutionStatus& execution = job.status.execution;
  const int worker_mib = execution.too_small_worker_mib;
  const int server_mib = execution.too_small_server_mib;
  const bool workers = worker_mib > 0 && plan.memory_mib <= worker_mib;
  const bool servers = server_mib > 0 && plan.aggregation.server_functions() > 0 &&
                       plan.server_memory_mib <= server_mib;
  if (!workers && !servers) return "";
  return std::string(workers ? "workers" : "parameter servers") + " of " +
         std::to_string(workers ? worker_mib : server_mib) +
         " MiB ran out of memory and were killed";
}

bool PlanIsOutOfDate(const Job& job) {
  const ExecutionStatus& execution = job.status.execution;
  const std::optional<Plan>& plan = job.status.plan;
  if (!plan.has_value() || !execution.planned_for.has_value()) return false;
  PlannedInputs planned_for = *execution.planned_for;
  if (planned_for.epochs == 0) planned_for.epochs = plan->epochs();
  return planned_for != PlannedInputsOf(job.spec, execution);
}

int64_t IterationsWanted(const JobSpec& spec, const ExecutionPlan& plan, int64_t first_iteration) {
  const int64_t per_epoch = PerEpoch(plan);
  const int64_t whole = first_iteration / per_epoch;
  const int64_t begun = whole + (first_iteration % per_epoch > 0 ? 1 : 0);
  // Of a status that holds any number the product may not fit.
  const int64_t most = std::numeric_limits<int64_t>::max() / per_epoch;
  return std::min(std::max(EpochsOf(spec), begun), most) * per_epoch;
}

int64_t CheckpointEveryOf(const JobSpec& spec, const Plan& plan) {
  const double iteration = plan.predicted.IterationSeconds();
  return iteration > 0 ? CheckpointEvery(spec.checkpoint.interval_seconds, iteration)
                       : plan.checkpoint_every;
}

void LimitToRemaining(const Plan& whole, int64_t first_iteration, TrainingLimits* limits) {
  limits->global_batch_size = whole.global_batch_size;
  limits->max_global_batch_size.reset();
  // A quarter less than the iterations that are left, so that rounding up gives just these.
  const double left = static_cast<double>(std::max<int64_t>(1, whole.iterations - first_iteration));
  const double per_epoch = static_cast<double>(std::max<int64_t>(1, whole.iterations_per_epoch));
  limits->epochs = (left - 0.25) / per_epoch;
}

std::optional<Plan> WholePlan(const PlannerInput& input, const PlanningOutcome& outcome) {
  if (outcome.feasible) return outcome.plan;
  if (!input.limits.global_batch_size.has_value()) return std::nullopt;
  Plan plan;
  plan.global_batch_size = *input.limits.global_batch_size;
  const int64_t samples = input.profile.training_samples;
  plan.iterations_per_epoch = (samples + plan.global_batch_size - 1) / plan.global_batch_size;
  plan.iterations = static_cast<int64_t>(
      std::ceil(input.limits.epochs * static_cast<double>(plan.iterations_per_epoch)));
  plan.parameters = input.parameters > 0
                        ? input.parameters
                        : static_cast<int64_t>(input.profile.model_bytes / sizeof(float));
  return plan;
}

PlannerInput ReplannerInputOf(const Job& job, const Platform& platform, const JobSpent& spent,
                              int64_t first_iteration) {
  Plan plan = *job.status.plan;
  plan.iterations = IterationsWanted(job.spec, plan, first_iteration);
  PlannerInput input = PlannerInputOf(job, platform, spent, false);
  LimitToRemaining(plan, first_iteration, &input.limits);
  // What is not asked for stays: the servers are there, or functions are large enough to serve. An
  // unmeasured plan did not choose it.
  AggregationConstraints& aggregation = input.aggregation;
  if (!IsUnmeasured(job)) {
    if (!aggregation.transport) aggregation.transport = plan.aggregation.transport;
    if (!aggregation.placement) aggregation.placement = plan.aggregation.placement;
  }
  TrainingLimits& limits = input.limits;
  if (!AtEpochBegin(plan, first_iteration)) {
    limits.max_functions =
        std::min(limits.max_functions.value_or(plan.virtual_partitions), plan.virtual_partitions);
  }
  return input;
}

Plan NextRevision(const Job& job, Plan planned, double elapsed_seconds, double spent,
                  int64_t first_iteration) {
  const Plan& before = *job.status.plan;
  planned.revision = before.revision + 1;
  planned.first_iteration = first_iteration;
  planned.iterations = IterationsWanted(job.spec, before, first_iteration);
  planned.iterations_per_epoch = before.iterations_per_epoch;
  if (!AtEpochBegin(before, first_iteration))
    planned.virtual_partitions = before.virtual_partitions;
  planned.block_elements = before.block_elements;
  planned.predicted.seconds += elapsed_seconds;
  planned.predicted.cost += spent;
  return planned;
}

bool SameWork(const Plan& a, const Plan& b) {
  return a.functions == b.functions && a.memory_mib == b.memory_mib &&
         a.server_memory_mib == b.server_memory_mib && a.aggregation == b.aggregation &&
         a.threads == b.threads && a.virtual_partitions == b.virtual_partitions &&
         a.iterations == b.iterations;
}

bool WithinFunctions(const JobSpec& spec, const Plan& plan) {
  const JobSpec::Functions& bounds = spec.functions;
  return plan.functions >= bounds.min && plan.functions <= bounds.max.value_or(plan.functions) &&
         plan.memory_mib >= bounds.memory_min_mib.value_or(plan.memory_mib) &&
         plan.memory_mib <= bounds.memory_max_mib.value_or(plan.memory_mib);
}

bool WithinPlatform(const JobSpec& spec, const Plan& plan, const Platform& platform) {
  const int largest = platform.memory.max_mib;
  return plan.functions <= platform.max_functions &&
         plan.aggregation.server_functions() <= platform.max_functions &&
         plan.memory_mib <= largest &&
         plan.server_memory_mib <=
             std::max(largest, spec.aggregation.server_memory_mib.value_or(0));
}

std::string DescribePlan(const Plan& plan) {
  std::string functions =
      CountOf(plan.functions, "function") + " of " + std::to_string(plan.memory_mib) + " MiB";
  if (plan.sample_memory_mib > 0) {
    functions +=
        " (samples stream through " + std::to_string(plan.sample_memory_mib) + " of these)";
  }
  if (plan.aggregation.placement == Placement::kWorkers) {
    return functions + " that serve as well (" +
           CountOf(plan.aggregation.servers(), "parameter server") + ")";
  }
  return functions + " and " + CountOf(plan.aggregation.server_functions(), "parameter server");
}

PlanRecord RecordOf(const Plan& plan, const std::string& reason, double elapsed_seconds,
                    double spent) {
  PlanRecord record;
  record.revision = plan.revision;
  record.first_iteration = plan.first_iteration;
  record.functions = plan.functions;
  record.memory_mib = plan.memory_mib;
  record.aggregation = plan.aggregation;
  // The transport and the placement are not written: neither changes a bit of what is computed.
  record.aggregation.transport = AggregationPlan{}.transport;
  record.aggregation.placement = AggregationPlan{}.placement;
  record.iterations = plan.iterations;
  record.reason = reason;
  record.at_seconds = elapsed_seconds;
  record.cost_before = spent;
  record.predicted_seconds = plan.predicted.seconds;
  record.predicted_cost = plan.predicted.cost;
  return record;
}

std::vector<PlanRecord> WithRecord(const JobStatus& status, PlanRecord record) {
  std::vector<PlanRecord> history = status.plan_history;
  history.push_back(std::move(record));
  if (history.size() > kMaxPlanRecords) {
    history.erase(history.begin(), history.end() - static_cast<std::ptrdiff_t>(kMaxPlanRecords));
  }
  return history;
}

}  // namespace lambdadnn
