// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/assumptions.h"

#include "common/base/text.h"
#include "common/plan/bill.h"

namespace lambdadnn {
namespace {

// Models that read a number.
enum Readers : unsigned {
  kOfExtended = 1U << static_cast<unsigned>(PredictionModel::kExtended),
  kOfLambdaDnn = 1U << static_cast<unsigned>(PredictionModel::kLambdaDnn),
  kOfFeng = 1U << static_cast<unsigned>(PredictionModel::kFeng),
  kOfFasDl = 1U << static_cast<unsigned>(PredictionModel::kFasDl),
};

// The nodes of a cluster say what a platform's totals do.
bool KnowsNodes(const PlannerInput& in) { return !in.platform.nodes.empty(); }

struct Unknown {
  const char* field;
  unsigned readers;
  bool (*is_unknown)(const PlannerInput&);
  const char* taken;
};

constexpr Unknown kUnknown[] = {
    {"profile.evaluationRate", kOfExtended,
     [](const PlannerInput& in) {
       return in.profile.evaluation_samples > 0 && in.profile.evaluation_rate == TrainingRate{};
     },
     "evaluations take no time"},
    {"profile.mergeBytesPerSecond", kOfExtended | kOfFeng,
     [](const PlannerInput& in) { return !in.profile.merge_bytes_per_second.known(); },
     "servers merge in no time"},
    {"profile.coldStartSeconds", kOfExtended,
     [](const PlannerInput& in) { return in.profile.cold_start_seconds == 0; },
     "functions start in no time"},
    {"profile.checkpointSeconds", kOfExtended,
     [](const PlannerInput& in) { return in.profile.checkpoint_seconds == 0; },
     "checkpoints take no time"},
    {"profile.checkpointCpuSeconds", kOfExtended,
     [](const PlannerInput& in) {
       return in.profile.checkpoint_seconds > 0 && in.profile.checkpoint_cpu_seconds == 0;
     },
     "iterations lose no time to a checkpoint that is written beside them"},
    {"profile.workerBaseMemory", kOfExtended,
     [](const PlannerInput& in) { return in.profile.worker_base_memory_mib == 0; },
     "a worker needs memory for the model and its batch alone"},
    {"profile.directSeconds", kOfExtended,
     [](const PlannerInput& in) {
       return in.aggregation.transport == TransportKind::kDirect && !in.profile.direct.known();
     },
     "connections take what they took on a development machine"},
    {"profile.iterationCpuSeconds", kOfFasDl,
     [](const PlannerInput& in) {
       return in.profile.iteration_cpu_seconds == 0 && in.profile.iteration_overhead_seconds == 0;
     },
     "a step takes time for its samples alone"},
    {"platform.milliCpuPerGiB", kOfExtended | kOfFasDl,
     [](const PlannerInput& in) { return !in.platform.milli_cpu_per_gib.known(); },
     "each function has a core of its own, whatever its memory"},
    {"platform.totalMilliCpu", kOfExtended,
     [](const PlannerInput& in) { return !in.platform.total_milli_cpu.known() && !KnowsNodes(in); },
     "functions never share a core, however many there are"},
    {"platform.totalMemory", kOfExtended,
     [](const PlannerInput& in) {
       return !in.platform.total_memory_mib.known() && !KnowsNodes(in);
     },
     "there is memory for platform.maxFunctions functions"},
    {"platform.gpus", kOfExtended,
     [](const PlannerInput& in) {
       return in.limits.gpu > 0 && !in.platform.total_gpus.known() && !KnowsNodes(in);
     },
     "there is a GPU for each of platform.maxFunctions functions"},
    {"platform.prices.gpuSecond", kOfExtended,
     [](const PlannerInput& in) {
       return in.limits.gpu > 0 && in.platform.prices.gpu_second == 0 &&
              !AllZero(in.platform.prices);
     },
     "a GPU costs nothing"},
    {"training.earlyStopping", kOfExtended,
     [](const PlannerInput& in) { return in.limits.early_stopping; },
     "no evaluation ends the training early: all epochs are planned for"},
    {"functions.gpu", kOfExtended, [](const PlannerInput& in) { return in.limits.gpu > 0; },
     "steps take on a GPU what the profile says, whatever else shares its machine"},
    {"platform.parameterServer.networkBytesPerSecond", kOfLambdaDnn,
     [](const PlannerInput& in) {
       return !in.platform.parameter_server_network_bytes_per_second.known();
     },
     "the parameter server's network has no limit"},
    {"platform.store.bytesPerSecond", kOfExtended,
     [](const PlannerInput& in) {
       return !in.platform.store_bytes_per_second.known() &&
              !in.profile.store_bytes_per_second.known();
     },
     "the store is as fast as all functions together"},
    {"platform.store.bytesPerSecond", kOfLambdaDnn | kOfFeng | kOfFasDl,
     [](const PlannerInput& in) { return !in.platform.store_bytes_per_second.known(); },
     "the store is as fast as all functions together"},
    {"platform.store.requestSeconds", kOfExtended,
     [](const PlannerInput& in) {
       return !in.platform.store_request_seconds.known() &&
              !in.profile.store_request_seconds.known();
     },
     "a request to the store takes no time"},
    {"platform.store.requestSeconds", kOfFeng | kOfFasDl,
     [](const PlannerInput& in) { return !in.platform.store_request_seconds.known(); },
     "a request to the store takes no time"},
};

// Numbers that this program fills in itself.
struct Default {
  const char* field;
  unsigned readers;
  OptionalQuantity Platform::* number;
  double unit;
  const char* unit_name;
};

constexpr Default kDefaults[] = {
    {"platform.functionTimeoutSeconds", kOfExtended, &Platform::function_timeout_seconds, 1, "s"},
    {"platform.function.networkBytesPerSecond", kOfLambdaDnn,
     &Platform::function_network_bytes_per_second, 1e6,
     "MB/s, not measured (lambdadnn run measures it)"},
    {"platform.parameterServer.networkBytesPerSecond", kOfLambdaDnn,
     &Platform::parameter_server_network_bytes_per_second, 1e6,
     "MB/s, not measured (lambdadnn run measures it)"},
    {"platform.store.bytesPerSecond", kOfExtended | kOfLambdaDnn | kOfFeng | kOfFasDl,
     &Platform::store_bytes_per_second, 1e6, "MB/s, not measured (lambdadnn run measures it)"},
    {"platform.store.requestSeconds", kOfExtended | kOfFeng | kOfFasDl,
     &Platform::store_request_seconds, 1e-3,
     "ms a request, not measured (lambdadnn run measures it)"},
};

}  // namespace

std::vector<Assumption> AssumptionsOf(const PlannerInput& input) {
  const unsigned reader = 1U << static_cast<unsigned>(input.options.model);
  std::vector<Assumption> assumptions;
  for (const Unknown& row : kUnknown) {
    if ((row.readers & reader) == 0 || !row.is_unknown(input)) continue;
    assumptions.push_back({row.field, row.taken});
  }
  for (const Default& row : kDefaults) {
    const OptionalQuantity& number = input.platform.*row.number;
    if ((row.readers & reader) == 0 || number.origin() != Origin::kDefault) continue;
    assumptions.push_back({row.field, FormatDouble(number / row.unit) + " " + row.unit_name});
  }
  return assumptions;
}

}  // namespace lambdadnn
