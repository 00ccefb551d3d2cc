// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "common/base/text.h"
#include "common/plan/geometry.h"
#include "common/plan/number_fields.h"
#include "operator/planner/models.h"

namespace lambdadnn {
namespace {

// Twice what λDNN's paper searches (memory by single MiB up to 10,240, 200 functions): seconds.
constexpr int64_t kMaxMemorySizes = 20'000;
constexpr int64_t kMaxCandidates = 4'000'000;

Status ValidateProfile(const WorkloadProfile& profile) {
  LDNN_RETURN_IF_ERROR(
      RequirePositive({{"profile.trainingSamples", static_cast<double>(profile.training_samples)},
                       {"profile.modelBytes", profile.model_bytes}}));
  // A status may hold anything.
  if (const auto problem = ProblemOf(profile, "profile")) return InvalidArgumentError(*problem);
  if (profile.buffer_bytes >= profile.model_bytes) {
    return InvalidArgumentError("profile.bufferBytes must be below profile.modelBytes");
  }
  return OkStatus();
}

Status ValidatePlatform(const Platform& platform) {
  LDNN_RETURN_IF_ERROR(
      RequirePositive({{"platform.memory.min", static_cast<double>(platform.memory.min_mib)},
                       {"platform.memory.step", static_cast<double>(platform.memory.step_mib)},
                       {"platform.maxFunctions", static_cast<double>(platform.max_functions)},
                       {"platform.cpuPeriodSeconds", platform.cpu_period_seconds}}));
  if (const auto problem = ProblemOf(platform, "platform")) return InvalidArgumentError(*problem);
  return OkStatus();
}

Status ValidateLimits(const TrainingLimits& limits, const WorkloadProfile& profile) {
  LDNN_RETURN_IF_ERROR(RequirePositive({{"training.epochs", limits.epochs}}));
  if (limits.global_batch_size.has_value() == limits.max_global_batch_size.has_value()) {
    return InvalidArgumentError(
        "training needs exactly one of globalBatchSize and maxGlobalBatchSize");
  }
  const int batch =
      limits.global_batch_size ? *limits.global_batch_size : *limits.max_global_batch_size;
  const std::string field =
      limits.global_batch_size ? "training.globalBatchSize" : "training.maxGlobalBatchSize";
  if (batch < 1) return InvalidArgumentError(field + " must be at least 1");
  if (limits.global_batch_size && batch > profile.training_samples) {
    return InvalidArgumentError(field + " is " + std::to_string(batch) + ", but there are only " +
                                std::to_string(profile.training_samples) +
                                " training samples; lower it");
  }
  if (limits.max_global_batch_size) {
    if (limits.local_batch_size < 1) {
      return InvalidArgumentError(
          "training.localBatchSize must be at least 1 with maxGlobalBatchSize");
    }
    if (limits.local_batch_size > batch) {
      return InvalidArgumentError("training.localBatchSize is " +
                                  std::to_string(limits.local_batch_size) + ", above " + field +
                                  " (" + std::to_string(batch) + "); lower it");
    }
  }
  if (limits.min_functions < 1 ||
      (limits.max_functions && *limits.max_functions < limits.min_functions)) {
    return InvalidArgumentError("functions.min must be at least 1 and at most functions.max");
  }
  if (limits.gpu < 0 || limits.gpu > kMostGpus) {
    return InvalidArgumentError("functions.gpu must be from 0 to " + std::to_string(kMostGpus));
  }
  if (limits.memory_step_mib && *limits.memory_step_mib < 1) {
    return InvalidArgumentError("functions.memory.step must be at least 1 MiB");
  }
  return OkStatus();
}

Status ValidateObjective(const Objective& objective) {
  const bool others =
      objective.deadline_seconds || objective.budget || objective.performance_cost_ratio;
  if (objective.finish_by && !objective.deadline_seconds) {
    return InvalidArgumentError("objective.finishBy is no deadline of the planner's yet");
  }
  if (!others && !objective.fixed) {
    return InvalidArgumentError(
        "objective needs deadlineSeconds, finishBy, budget, performanceCostRatio or fixed");
  }
  if (objective.fixed && (others || objective.best_effort)) {
    return InvalidArgumentError(
        "objective.fixed goes with no other objective; remove it or the others");
  }
  if (objective.performance_cost_ratio && !objective.deadline_seconds && !objective.cost_weight) {
    return InvalidArgumentError(
        "objective.performanceCostRatio needs its weight, or a deadline beside it");
  }
  if (objective.cost_weight && !(*objective.cost_weight >= 0 && *objective.cost_weight <= 1)) {
    return InvalidArgumentError("objective.performanceCostRatio.weight must be from 0 to 1");
  }
  if (objective.best_effort && !objective.deadline_seconds) {
    return InvalidArgumentError("objective.bestEffort needs deadlineSeconds or finishBy");
  }
  if (objective.confidence && !objective.deadline_seconds) {
    return InvalidArgumentError("objective.confidence needs deadlineSeconds or finishBy");
  }
  if (objective.confidence &&
      !(*objective.confidence >= kLeastConfidence && *objective.confidence <= kMostConfidence)) {
    return InvalidArgumentError("objective.confidence must be from 0.5 to 0.99");
  }
  if (objective.deadline_seconds) {
    LDNN_RETURN_IF_ERROR(
        RequirePositive({{"objective.deadlineSeconds", *objective.deadline_seconds}}));
  }
  if (objective.budget) {
    LDNN_RETURN_IF_ERROR(RequirePositive({{"objective.budget", *objective.budget}}));
  }
  if (objective.fixed) {
    return RequirePositive(
        {{"objective.fixed.functions", static_cast<double>(objective.fixed->functions)},
         {"objective.fixed.memory", static_cast<double>(objective.fixed->memory_mib)}});
  }
  return OkStatus();
}

Status ValidateAggregation(const PlannerInput& input) {
  const AggregationConstraints& aggregation = input.aggregation;
  const int64_t blocks = BlockCount(ParametersOf(input), input.platform.block_elements);
  if (aggregation.shards && (*aggregation.shards < 1 || *aggregation.shards > blocks)) {
    return InvalidArgumentError("aggregation.shards is " + std::to_string(*aggregation.shards) +
                                "; this model allows 1 to " + std::to_string(blocks) +
                                " (one a block of " +
                                std::to_string(input.platform.block_elements) + " parameters)");
  }
  if (aggregation.spread &&
      (*aggregation.spread < 1 ||
       (aggregation.shards && *aggregation.shards % *aggregation.spread != 0))) {
    return InvalidArgumentError("aggregation.spread must divide aggregation.shards");
  }
  if (aggregation.server_memory_mib && *aggregation.server_memory_mib < 1) {
    return InvalidArgumentError("aggregation.serverMemory must be at least 1 MiB");
  }
  if (!aggregation.layers.empty()) {
    AggregationPlan plan;
    plan.layers = aggregation.layers;
    LDNN_RETURN_IF_ERROR(plan.Validate());
  }
  return OkStatus();
}

// The platform's sizes within the job's bounds, every `functions.memory.step`.
Result<std::vector<int>> MemoryGrid(const PlannerInput& input) {
  const Platform::Memory& memory = input.platform.memory;
  const TrainingLimits& limits = input.limits;
  const int64_t from = std::max(memory.min_mib, limits.min_memory_mib.value_or(memory.min_mib));
  const int64_t to = std::min(memory.max_mib, limits.max_memory_mib.value_or(memory.max_mib));
  const int step = limits.memory_step_mib.value_or(memory.step_mib);
  if (step % memory.step_mib != 0) {
    return InvalidArgumentError("functions.memory.step is " + std::to_string(step) +
                                " MiB; the platform's sizes are " +
                                std::to_string(memory.step_mib) + " MiB apart: give a multiple");
  }
  const std::string sizes = std::to_string(memory.min_mib) + " to " +
                            std::to_string(memory.max_mib) + " MiB, " +
                            std::to_string(memory.step_mib) + " MiB apart";
  const int64_t above = (from - memory.min_mib + memory.step_mib - 1) / memory.step_mib;
  const int64_t first = memory.min_mib + above * memory.step_mib;
  if (first > to) {
    return InvalidArgumentError("no memory size is allowed: none of the platform's (" + sizes +
                                ") lies within functions.memory; change min or max");
  }
  if ((to - first) / step >= kMaxMemorySizes) {
    return InvalidArgumentError("the platform has " + std::to_string((to - first) / step + 1) +
                                " memory sizes (" + sizes + "), more than the " +
                                std::to_string(kMaxMemorySizes) +
                                " that are searched; raise platform.memory.step");
  }
  std::vector<int> grid;
  for (int64_t m = first; m <= to; m += step) grid.push_back(static_cast<int>(m));
  return grid;
}

// One has so many GPUs; each worker its own.
Status LimitByGpus(const PlannerInput& input, SearchSpace* space) {
  const OptionalQuantity& gpus = input.platform.total_gpus;
  if (input.limits.gpu == 0 || !gpus.known()) return OkStatus();
  const double most = std::floor(gpus / input.limits.gpu);
  if (most < space->min_functions) {
    return InvalidArgumentError(
        "each function has a GPU of its own (functions.gpu), and there are " +
        FormatDouble(std::floor(gpus)) + " for " + std::to_string(space->min_functions) +
        (space->min_functions == 1 ? " function" : " functions") +
        "; use machines with more of them, lower functions.min, or leave out functions.gpu");
  }
  space->max_functions = static_cast<int>(std::min<double>(most, space->max_functions));
  return OkStatus();
}

Result<SearchSpace> FixedSpace(const PlannerInput& input) {
  const Objective::Fixed& fixed = *input.objective.fixed;
  const Platform::Memory& memory = input.platform.memory;
  if (fixed.memory_mib < memory.min_mib || fixed.memory_mib > memory.max_mib) {
    return InvalidArgumentError("objective.fixed.memory is " + std::to_string(fixed.memory_mib) +
                                " MiB; the platform allows " + std::to_string(memory.min_mib) +
                                " to " + std::to_string(memory.max_mib) + " MiB");
  }
  SearchSpace space;
  space.min_functions = space.max_functions = fixed.functions;
  space.memory_mib = {fixed.memory_mib};
  return space;
}

}  // namespace

Status RequirePositive(std::initializer_list<InputNumber> numbers) {
  for (const InputNumber& number : numbers) {
    if (!(number.value > 0) || !std::isfinite(number.value)) {
      return InvalidArgumentError(std::string(number.field) + " is " + FormatDouble(number.value) +
                                  ", and must be a number above 0; correct it");
    }
  }
  return OkStatus();
}

double FunctionStoreBandwidth(const Platform& platform, double memory_mib) {
  constexpr double kNotLimited = std::numeric_limits<double>::infinity();
  const double given_in_all = platform.store_bytes_per_second;
  const double in_all = given_in_all > 0 ? given_in_all : kNotLimited;
  const bool given = platform.function_store_slope != 0 || platform.function_store_intercept != 0;
  if (!given) return in_all;
  return std::min(platform.function_store_slope * memory_mib + platform.function_store_intercept,
                  in_all);
}

Status RequireStoreBandwidth(const PlannerInput& input, const char* model) {
  if (std::isfinite(FunctionStoreBandwidth(input.platform, input.platform.memory.max_mib))) {
    return OkStatus();
  }
  return InvalidArgumentError(std::string("platform.store.bytesPerSecond or ") +
                              "platform.function.storeBytesPerSecond (needed by model " + model +
                              ") must be a positive number");
}

Batches::Batches(const PlannerInput& input) {
  if (input.limits.global_batch_size) {
    largest_ = *input.limits.global_batch_size;
    return;
  }
  local_ = input.limits.local_batch_size;
  largest_ = *input.limits.max_global_batch_size;
}

int Batches::Global(int functions) const {
  if (local_ == 0) return largest_;
  return static_cast<int>(std::min<int64_t>(int64_t{functions} * local_, largest_));
}

bool Batches::Shrinks(int functions) const {
  return local_ > 0 && int64_t{functions} * local_ > largest_;
}

int64_t ParametersOf(const PlannerInput& input) {
  if (input.parameters > 0) return input.parameters;
  return static_cast<int64_t>(std::ceil(input.profile.model_bytes / kFloatBytes));
}

int64_t BuffersOf(const PlannerInput& input) {
  return static_cast<int64_t>(std::ceil(input.profile.buffer_bytes / kFloatBytes));
}

Status ValidateInput(const PlannerInput& input) {
  LDNN_RETURN_IF_ERROR(ValidateProfile(input.profile));
  LDNN_RETURN_IF_ERROR(ValidatePlatform(input.platform));
  LDNN_RETURN_IF_ERROR(ValidateLimits(input.limits, input.profile));
  LDNN_RETURN_IF_ERROR(ValidateObjective(input.objective));
  LDNN_RETURN_IF_ERROR(ValidateAggregation(input));
  if (input.limits.gpu > 0 && input.options.model != PredictionModel::kExtended) {
    return InvalidArgumentError(
        "functions.gpu is beyond the papers' models, which know no price of a GPU; use model " +
        std::string(KindOf(PredictionModel::kExtended).name) + ", or leave it out");
  }
  return KindOf(input.options.model).validate(input);
}

Result<SearchSpace> SpaceOf(const PlannerInput& input) {
  const Batches batches(input);
  SearchSpace space;
  if (input.objective.fixed) {
    LDNN_ASSIGN_OR_RETURN(space, FixedSpace(input));
  } else {
    space.min_functions = input.limits.min_functions;
    space.max_functions =
        std::min(input.platform.max_functions,
                 input.limits.max_functions.value_or(input.platform.max_functions));
    LDNN_ASSIGN_OR_RETURN(space.memory_mib, MemoryGrid(input));
  }
  if (!input.aggregation.layers.empty()) {
    const int n = input.aggregation.layers.back();
    space.min_functions = std::max(space.min_functions, n);
    space.max_functions = std::min(space.max_functions, n);
  }
  LDNN_RETURN_IF_ERROR(LimitByGpus(input, &space));
  // A function without a sample would only cost.
  if (space.max_functions > batches.largest()) {
    space.max_functions = batches.largest();
    space.functions_limit = Limit::kBatch;
  }
  if (space.min_functions > space.max_functions) {
    return InvalidArgumentError(
        "no number of functions is allowed: at least " + std::to_string(space.min_functions) +
        " by the job, at most " + std::to_string(space.max_functions) +
        " by functions.max, platform.maxFunctions, aggregation.layers and the batch size");
  }
  const int64_t numbers = int64_t{space.max_functions} - space.min_functions + 1;
  if (numbers * std::ssize(space.memory_mib) > kMaxCandidates) {
    return InvalidArgumentError(
        "there are " + std::to_string(numbers) + " numbers of functions and " +
        std::to_string(space.memory_mib.size()) + " memory sizes to choose from, more than the " +
        std::to_string(kMaxCandidates) +
        " pairs that are searched; lower functions.max, or raise functions.memory.step");
  }
  return space;
}

}  // namespace lambdadnn
