// SPDX-License-Identifier: Apache-2.0
#include "common/plan_json/plan_json.h"

#include <algorithm>
#include <cstddef>

#include "common/base/statistics.h"
#include "common/base/text.h"
#include "common/json/memory_field.h"
#include "common/json/unknown_field.h"

namespace lambdadnn {
namespace {

// What becomes of fields that this version does not know.
enum class Unknown { kRefused, kIgnored };

AggregationPlan DecodeAggregation(const Json& json, const std::string& path, Unknown unknown,
                                  std::vector<FieldError>* errors) {
  AggregationPlan aggregation;
  JsonReader reader(json, path, errors);
  reader.Optional("transport", &aggregation.transport);
  reader.Optional("placement", &aggregation.placement);
  reader.Optional("shards", &aggregation.shards);
  reader.Optional("layers", &aggregation.layers);
  reader.Optional("spread", &aggregation.spread);
  if (unknown == Unknown::kRefused) reader.Finish();
  return aggregation;
}

Prediction DecodePrediction(const Json& json, const std::string& path,
                            std::vector<FieldError>* errors) {
  Prediction predicted;
  JsonReader reader(json, path, errors);
  reader.Optional("seconds", &predicted.seconds);
  reader.Optional("cost", &predicted.cost);
  reader.Optional("iterations", &predicted.iterations);
  for (const TermKind& kind : kTermKinds) reader.Optional(kind.field, &predicted[kind.term]);
  reader.Optional("deviationSeconds", &predicted.deviation);
  if (const Json* deviations = reader.Child("deviations")) {
    JsonReader nested(*deviations, reader.PathOf("deviations"), errors);
    for (const TermKind& kind : kTermKinds) {
      nested.Optional(kind.field, &predicted.DeviationOf(kind.term));
    }
  }
  return predicted;
}

void ReadExecutionPlan(JsonReader& reader, Unknown unknown, std::vector<FieldError>* errors,
                       ExecutionPlan* plan) {
  reader.Optional("revision", &plan->revision);
  reader.Optional("firstIteration", &plan->first_iteration);
  reader.Required("functions", &plan->functions);
  ReadMemoryMib(reader, "memory", &plan->memory_mib);
  ReadMemoryMib(reader, "sampleMemory", &plan->sample_memory_mib);
  ReadMemoryMib(reader, "serverMemory", &plan->server_memory_mib);
  reader.Optional("gpu", &plan->gpu);
  reader.Optional("localBatchSize", &plan->local_batch_size);
  reader.Optional("globalBatchSize", &plan->global_batch_size);
  reader.Optional("iterations", &plan->iterations);
  reader.Optional("iterationsPerEpoch", &plan->iterations_per_epoch);
  if (const Json* aggregation = reader.Child("aggregation")) {
    plan->aggregation =
        DecodeAggregation(*aggregation, reader.PathOf("aggregation"), unknown, errors);
  }
  reader.Optional("threads", &plan->threads);
  reader.Optional("isa", &plan->isa);
  reader.Optional("libtorch", &plan->libtorch);
  reader.Optional("virtualPartitions", &plan->virtual_partitions);
  reader.Optional("checkpointEvery", &plan->checkpoint_every);
  reader.Optional("parameters", &plan->parameters);
  reader.Optional("buffers", &plan->buffers);
  reader.Optional("blockElements", &plan->block_elements);
}

// Unless the plan holds less than was written: of errors before `errors_before` nothing follows,
// nor of fields that the caller may leave out.
void ReportInvalid(const ExecutionPlan& plan, const std::string& path, size_t errors_before,
                   std::vector<FieldError>* errors) {
  const auto begin = errors->begin() + static_cast<std::ptrdiff_t>(errors_before);
  if (!std::all_of(begin, errors->end(), IsUnknownField)) return;
  if (const Status valid = plan.Validate(); !valid.ok()) errors->push_back({path, valid.message()});
}

}  // namespace

Json AggregationToJson(const AggregationPlan& aggregation) {
  return {{"transport", EnumName(aggregation.transport)},
          {"placement", EnumName(aggregation.placement)},
          {"shards", aggregation.shards},
          {"layers", aggregation.layers},
          {"spread", aggregation.spread}};
}

Json PredictionToJson(const Prediction& predicted) {
  Json json = {{"seconds", FormatDouble(predicted.seconds)},
               {"cost", FormatDouble(predicted.cost)},
               {"iterations", predicted.iterations}};
  for (const TermKind& kind : kTermKinds) {
    if (kind.term == Term::kRelease && predicted[kind.term] <= 0) continue;
    json[std::string(kind.field)] = FormatDouble(predicted[kind.term]);
  }
  if (predicted.deviation <= 0) return json;
  json["p90Seconds"] = FormatDouble(predicted.SecondsAt(NormalQuantile(0.9)));
  json["deviationSeconds"] = FormatDouble(predicted.deviation);
  Json& deviations = json["deviations"] = Json::object();
  for (const TermKind& kind : kTermKinds) {
    const double deviation = predicted.DeviationOf(kind.term);
    if (deviation > 0) deviations[std::string(kind.field)] = FormatDouble(deviation);
  }
  return json;
}

Json ExecutionPlanToJson(const ExecutionPlan& plan) {
  Json json = {{"revision", plan.revision},
               {"firstIteration", plan.first_iteration},
               {"functions", plan.functions},
               {"localBatchSize", plan.local_batch_size},
               {"globalBatchSize", plan.global_batch_size},
               {"iterations", plan.iterations},
               {"iterationsPerEpoch", plan.iterations_per_epoch},
               {"aggregation", AggregationToJson(plan.aggregation)},
               {"threads", plan.threads},
               {"isa", plan.isa},
               {"libtorch", plan.libtorch},
               {"virtualPartitions", plan.virtual_partitions},
               {"checkpointEvery", plan.checkpoint_every},
               {"parameters", plan.parameters},
               {"blockElements", plan.block_elements}};
  if (plan.buffers > 0) json["buffers"] = plan.buffers;
  if (plan.gpu > 0) json["gpu"] = plan.gpu;
  PutMemoryMib(&json, "memory", plan.memory_mib);
  if (plan.sample_memory_mib > 0) PutMemoryMib(&json, "sampleMemory", plan.sample_memory_mib);
  PutMemoryMib(&json, "serverMemory", plan.server_memory_mib);
  return json;
}

Json PlanToJson(const Plan& plan) {
  Json json = ExecutionPlanToJson(plan);
  // Of a plan that was made before the model was measured nothing is predicted.
  if (plan.predicted.known()) json["predicted"] = PredictionToJson(plan.predicted);
  json["binding"] = plan.binding;
  return json;
}

ExecutionPlan DecodeExecutionPlan(const Json& json, const std::string& path,
                                  std::vector<FieldError>* errors) {
  const size_t errors_before = errors->size();
  ExecutionPlan plan;
  JsonReader reader(json, path, errors);
  ReadExecutionPlan(reader, Unknown::kRefused, errors, &plan);
  reader.Finish();
  ReportInvalid(plan, path, errors_before, errors);
  return plan;
}

Plan DecodePlan(const Json& json, const std::string& path, std::vector<FieldError>* errors) {
  const size_t errors_before = errors->size();
  Plan plan;
  JsonReader reader(json, path, errors);
  ReadExecutionPlan(reader, Unknown::kIgnored, errors, &plan);
  if (const Json* predicted = reader.Child("predicted")) {
    plan.predicted = DecodePrediction(*predicted, reader.PathOf("predicted"), errors);
  }
  reader.Optional("binding", &plan.binding);
  ReportInvalid(plan, path, errors_before, errors);
  return plan;
}

Result<Plan> PlanFromJson(const Json& json) {
  std::vector<FieldError> errors;
  Plan plan = DecodePlan(json, "plan", &errors);
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return plan;
}

}  // namespace lambdadnn
