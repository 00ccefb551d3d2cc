// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_job.h"

namespace lambdadnn::simulation {
namespace {

OptimizerSpec MakeOptimizerSpec(const OptimizerConfig& config) {
  OptimizerSpec spec;
  spec.name = config.name;
  spec.learning_rate = config.learning_rate;
  spec.momentum = config.momentum;
  spec.nesterov = config.nesterov;
  spec.weight_decay = config.weight_decay;
  spec.warmup_iterations = config.schedule.warmup_iterations;
  spec.clip_global_norm = config.clip_global_norm;
  return spec;
}

WorkloadProfile MakeProfile(const Scenario& scenario) {
  WorkloadProfile profile;
  profile.training_samples = scenario.training.training_samples;
  profile.training_bytes = static_cast<double>(scenario.training.training_samples) * 8;
  profile.model_bytes = static_cast<double>(scenario.plan.parameters) * sizeof(float);
  profile.buffer_bytes = static_cast<double>(scenario.plan.buffers) * sizeof(float);
  profile.training_rate.intercept = 1 / scenario.compute_seconds_per_sample;
  profile.iteration_overhead_seconds = scenario.compute_seconds;
  profile.merge_bytes_per_second = 1e9;
  profile.cold_start_seconds = scenario.platform.cold_start_seconds;
  return profile;
}

}  // namespace

WorkloadFacts MakeFacts(const Scenario& scenario) {
  // Of models with buffers, which LibTorch alone knows, no size is known.
  const int64_t parameters = scenario.plan.buffers > 0 ? 0 : scenario.plan.parameters;
  return {scenario.training.training_samples, scenario.test_samples, 8, parameters};
}

SliceRecord MakeProfileRecord(const Scenario& scenario, const SliceRequest& request) {
  constexpr int kSteps = 8;
  SliceRecord record;
  record.invocation = request.invocation;
  record.outcome = SliceOutcome::kFinished;
  const double step =
      scenario.compute_seconds + scenario.compute_seconds_per_sample * request.profile.batch_size;
  record.profile_iteration_seconds.assign(kSteps, step);
  const WorkloadFacts facts = MakeFacts(scenario);
  record.metrics = {{"trainingSamples", static_cast<double>(facts.training_samples)},
                    {"testSamples", static_cast<double>(facts.test_samples)},
                    {"trainingBytes", 8 * static_cast<double>(facts.training_samples)},
                    {"parameters", static_cast<double>(scenario.plan.parameters)},
                    {"buffers", static_cast<double>(scenario.plan.buffers)},
                    {"baseMemoryMib", 64},
                    {"mergeBytesPerSecond", 1e9},
                    {"storeRequestSeconds", scenario.store.request_seconds}};
  return record;
}

Job MakeJob(const Scenario& scenario) {
  Job job;
  job.metadata.name = "job";
  JobSpec& spec = job.spec;
  spec.model.builtin_name = "mlp";
  spec.dataset.uri = "file:///data";
  spec.dataset.format = DatasetFormat::kIdx;
  spec.dataset.classes = 2;
  spec.training.epochs = static_cast<double>(scenario.training.epochs);
  spec.training.global_batch_size = scenario.plan.global_batch_size;
  spec.training.seed = scenario.training.seed;
  spec.training.early_stopping = scenario.training.early_stopping;
  spec.training.keep_best = scenario.training.keep_best;
  spec.training.optimizer = MakeOptimizerSpec(scenario.training.optimizer);
  spec.objective.fixed = Objective::Fixed{scenario.plan.functions, scenario.plan.memory_mib};
  spec.aggregation.shards = scenario.plan.aggregation.shards;
  if (!scenario.planner_chooses_layers) {
    spec.aggregation.layers = scenario.plan.aggregation.layers;
  }
  spec.aggregation.spread = scenario.plan.aggregation.spread;
  spec.aggregation.placement = scenario.plan.aggregation.placement;
  spec.aggregation.transport = scenario.plan.aggregation.transport;
  if (scenario.plan.aggregation.placement == Placement::kDedicated) {
    spec.aggregation.server_memory_mib = scenario.plan.server_memory_mib;
  }
  spec.profile = MakeProfile(scenario);
  if (scenario.while_training) {
    spec.profiling = Profiling::kWhileTraining;
    spec.profile.reset();
    spec.objective.fixed.reset();
    spec.objective.deadline_seconds = 5;  // as fast as it can
    spec.objective.best_effort = true;
    spec.functions.max = 4;
    spec.aggregation = {};
    spec.aggregation.transport = scenario.plan.aggregation.transport;
  }
  spec.object_store.uri = "file:///store";
  spec.checkpoint.interval_seconds = scenario.checkpoint_interval_seconds;
  spec.checkpoint.keep = scenario.keep_checkpoints;
  spec.backoff_limit = 100;
  return job;
}

ControllerOptions MakeControllerOptions(const Scenario& scenario, int64_t leader_epoch) {
  ControllerOptions options;
  options.leader_epoch = leader_epoch;
  options.workers = 1;
  options.tick_seconds = scenario.tick_seconds;
  options.progress_seconds = 5;
  options.idle_tick_seconds = 1;
  options.finished_tick_seconds = 5;
  options.max_retry_seconds = 2;
  options.max_start_retry_seconds = 4;
  options.max_failure_delay_seconds = 2;
  options.cleanup_seconds = 60;
  options.cleanup_settle_seconds = 4;  // beyond StoreTiming::late_seconds
  options.timeout_margin_share = 1;
  options.max_timeout_margin_seconds = 2;
  Platform& platform = options.platform;
  platform.function_timeout_seconds = scenario.slice_seconds + options.max_timeout_margin_seconds;
  platform.block_elements = kSimulatedBlockElements;
  platform.function_network_bytes_per_second = 1e8;
  platform.parameter_server_network_bytes_per_second = 1e9;
  platform.function_store_intercept = scenario.store.bytes_per_second;
  platform.store_bytes_per_second = 10 * scenario.store.bytes_per_second;
  platform.store_request_seconds = scenario.store.request_seconds;
  platform.prices.gib_second = 1.66667e-5;
  return options;
}

}  // namespace lambdadnn::simulation
