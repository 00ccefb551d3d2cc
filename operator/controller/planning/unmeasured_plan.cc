// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning/unmeasured_plan.h"

#include <algorithm>
#include <cmath>

#include "operator/api/peer_channel.h"
#include "operator/planner/function_memory.h"
#include "operator/planner/node_packing.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/training_config_builder.h"

namespace lambdadnn {
namespace {

constexpr double kMib = 1 << 20;

// The size of the planner's grid with which so many functions are as large together as one that
// profiles, or the smallest that the job allows; 0 = none.
int SizeMib(const JobSpec& spec, const Platform& platform, int functions, int profiled_mib) {
  const Platform::Memory& memory = platform.memory;
  const int step = std::max(1, memory.step_mib);
  const int from = std::max(memory.min_mib, spec.functions.memory_min_mib.value_or(0));
  const int first = memory.min_mib + (from - memory.min_mib + step - 1) / step * step;
  const int stride = std::max(1, spec.functions.memory_step_mib.value_or(step));
  if (first > profiled_mib) return 0;
  return first + std::max(0, profiled_mib / functions - first) / stride * stride;
}

// Those that would fill the machine beside the one that measures, and train instead.
int FillersReplaced(const JobSpec& spec, const Platform& platform, const ProfilePlan& profile) {
  const int functions = spec.functions.min;
  const int size = SizeMib(spec, platform, functions, profile.memory_mib.front());
  return size == 0
             ? 1
             : (functions * size + profile.memory_mib.front() - 1) / profile.memory_mib.front();
}

// A shard each, as far as there are blocks for them.
AggregationPlan AggregationOf(const JobSpec& spec, int64_t parameters, int64_t block_elements) {
  AggregationPlan aggregation;
  const int functions = spec.functions.min;
  const int64_t blocks = (parameters + block_elements - 1) / std::max<int64_t>(1, block_elements);
  aggregation.placement = Placement::kWorkers;
  aggregation.layers = {1, functions};
  aggregation.shards = static_cast<int>(std::clamp<int64_t>(blocks, 1, functions));
  aggregation.spread = aggregation.shards;
  if (functions > 1 && ConnectsFunctions(spec)) {
    aggregation.transport = spec.aggregation.transport.value_or(TransportKind::kDirect);
  }
  return aggregation;
}

// What the function needs as far as it is known; MiB.
double KnownMib(const JobSpec& spec, const WorkloadFacts& facts, const Plan& plan) {
  const double samples = static_cast<double>(facts.training_samples + facts.test_samples) *
                         static_cast<double>(facts.sample_bytes) / plan.functions;
  const double vectors =
      kWorkerVectorCopies * static_cast<double>(facts.parameters) * sizeof(float);
  return (samples + vectors) / kMib +
         ExchangeMibOfWorker(plan.aggregation, plan.parameters, BuildTrainingLimits(spec));
}

bool NamesAggregation(const AggregationSpec& aggregation) {
  return aggregation.shards || !aggregation.layers.empty() || aggregation.spread ||
         aggregation.server_memory_mib || aggregation.placement == Placement::kDedicated;
}

// Beside one function that measures.
bool Fits(const JobSpec& spec, const Platform& platform, const Plan& plan, int measured_mib) {
  if (spec.functions.max == 1) return false;  // never two at once
  const int milli_cpu = MilliCpuOf(platform, plan.memory_mib);
  const int measured_milli_cpu = MilliCpuOf(platform, measured_mib);
  const double sidecar_mib = platform.sidecar_memory_mib;
  const double memory_mib =
      plan.functions * (plan.memory_mib + sidecar_mib) + measured_mib + sidecar_mib;
  if (platform.total_memory_mib > 0 && memory_mib > platform.total_memory_mib) return false;
  if (platform.total_milli_cpu > 0 &&
      plan.functions * milli_cpu + measured_milli_cpu > platform.total_milli_cpu) {
    return false;
  }
  const auto pods = [&](int count, int memory, int cpu) {
    return PodGroup{count, memory + platform.machine_sidecar_memory_mib,
                    cpu + platform.machine_sidecar_milli_cpu};
  };
  return platform.nodes.empty() ||
         FitOnNodes(platform.nodes, pods(plan.functions, plan.memory_mib, milli_cpu),
                    pods(1, measured_mib, measured_milli_cpu));
}

// What of the job alone keeps it from training before it is measured; "" = nothing.
std::string ObstacleOf(const JobSpec& spec, const WorkloadFacts& facts) {
  if (!spec.checkpoint.resume_from.empty()) {
    return "it goes on from the plan of another job (spec.checkpoint.resumeFrom)";
  }
  if (spec.objective.fixed) return "spec.objective.fixed names the plan";
  if (!spec.training.global_batch_size) {
    return "spec.training.globalBatchSize is not set, so that the batch follows from the plan";
  }
  if (spec.functions.gpu > 0) return "its functions have GPUs";
  if (NamesAggregation(spec.aggregation)) {
    return "spec.aggregation says how functions are combined";
  }
  if (!facts.known()) {
    return "the sizes of its model and data set are known only once a function has read them";
  }
  if (*spec.training.global_batch_size > facts.training_samples) {
    return "spec.training.globalBatchSize is larger than the data set";
  }
  return "";
}

}  // namespace

ProfilePlan ProfilePlanBeside(const JobSpec& spec, const Platform& platform) {
  ProfilePlan plan = MakeProfilePlan(spec, platform);
  plan.functions = std::max(1, plan.functions - FillersReplaced(spec, platform, plan));
  return plan;
}

Result<Plan> MakeUnmeasuredPlan(const JobSpec& spec, const Platform& platform,
                                const WorkloadFacts& facts) {
  if (const std::string obstacle = ObstacleOf(spec, facts); !obstacle.empty()) {
    return FailedPreconditionError(obstacle);
  }
  const ProfilePlan profile = MakeProfilePlan(spec, platform);
  Plan plan;
  plan.functions = spec.functions.min;
  plan.memory_mib = SizeMib(spec, platform, plan.functions, profile.memory_mib.front());
  if (plan.memory_mib == 0) {
    return FailedPreconditionError("no size of functions is within spec.functions.memory");
  }
  if (!Fits(spec, platform, plan, profile.memory_mib.front())) {
    return FailedPreconditionError(
        "there is no room for functions that train beside the one that measures");
  }
  plan.aggregation = AggregationOf(spec, facts.parameters, platform.block_elements);
  plan.global_batch_size = *spec.training.global_batch_size;
  plan.local_batch_size = (plan.global_batch_size + plan.functions - 1) / plan.functions;
  plan.iterations_per_epoch =
      (facts.training_samples + plan.global_batch_size - 1) / plan.global_batch_size;
  plan.iterations = static_cast<int64_t>(
      std::ceil(spec.training.epochs * static_cast<double>(plan.iterations_per_epoch)));
  plan.threads = ThreadsOf(platform, plan.memory_mib);
  plan.checkpoint_every = std::min(kUnmeasuredCheckpointEvery, plan.iterations_per_epoch);
  plan.parameters = facts.parameters;
  plan.block_elements = platform.block_elements;
  const double known_mib = KnownMib(spec, facts, plan);
  if (known_mib > kKnownMemoryPart * plan.memory_mib) {
    return FailedPreconditionError(
        "the data set and the model take " + std::to_string(std::llround(known_mib)) +
        " MiB of each function, which has " + std::to_string(plan.memory_mib));
  }
  return plan;
}

bool IsUnmeasured(const Job& job) {
  return job.status.plan.has_value() &&
         job.status.execution.unmeasured_plan != UnmeasuredPlan::kNone;
}

bool TrainsUnmeasured(const Job& job) {
  return IsUnmeasured(job) && !job.status.profile.has_value() &&
         job.status.execution.unmeasured_plan == UnmeasuredPlan::kTrains;
}

bool LeavesUnmeasured(const Job& job) {
  return IsUnmeasured(job) && !job.status.profile.has_value() &&
         job.status.execution.unmeasured_plan == UnmeasuredPlan::kLeft;
}

}  // namespace lambdadnn
