// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/json/memory_field.h"
#include "operator/api/job_codec.h"
#include "operator/api/workload_profile_codec.h"

namespace lambdadnn {
namespace {

void PutText(Json* json, const char* name, const std::string& value) {
  if (!value.empty()) (*json)[name] = value;
}

void PutDecimal(Json* json, const char* name, const std::optional<double>& value) {
  if (value) (*json)[name] = FormatDouble(*value);
}

void PutMemory(Json* json, const char* name, const std::optional<int>& memory_mib) {
  if (memory_mib) (*json)[name] = FormatMemoryMib(*memory_mib);
}

template <typename T>
void PutOptional(Json* json, const char* name, const std::optional<T>& value) {
  if (value) (*json)[name] = *value;
}

template <NamedEnum Enum>
std::string_view AutoOr(const std::optional<Enum>& value) {
  return value ? EnumName(*value) : std::string_view(kAuto);
}

int64_t Whole(double value) { return std::llround(value); }

void PutWhole(Json* json, const char* name, const std::optional<double>& value) {
  if (value) (*json)[name] = Whole(*value);
}

Json EncodeMetadata(const ObjectMeta& metadata) {
  Json json = Json::object();
  PutText(&json, "name", metadata.name);
  PutText(&json, "namespace", metadata.namespace_name);
  PutText(&json, "uid", metadata.uid);
  PutText(&json, "resourceVersion", metadata.resource_version);
  if (metadata.generation != 0) json["generation"] = metadata.generation;
  PutText(&json, "creationTimestamp", metadata.creation_timestamp);
  PutText(&json, "deletionTimestamp", metadata.deletion_timestamp);
  if (!metadata.finalizers.empty()) json["finalizers"] = metadata.finalizers;
  if (!metadata.labels.empty()) json["labels"] = metadata.labels;
  if (!metadata.annotations.empty()) json["annotations"] = metadata.annotations;
  return json;
}

// Decimals as text.
Json EncodeParameter(const Json& value) {
  if (value.is_number_float()) return FormatDouble(value.get<double>());
  if (!value.is_array()) return value;
  Json list = Json::array();
  for (const Json& entry : value) list.push_back(EncodeParameter(entry));
  return list;
}

Json EncodeModel(const ModelSpec& model) {
  Json json = Json::object();
  if (!model.builtin_name.empty()) {
    json["builtin"] = {{"name", model.builtin_name}};
    for (const auto& [name, value] : model.builtin_parameters.items()) {
      json["builtin"]["parameters"][name] = EncodeParameter(value);
    }
  }
  if (!model.torch_script_uri.empty()) json["torchScript"] = {{"uri", model.torch_script_uri}};
  return json;
}

Json EncodeAugmentation(const Augmentation& augment) {
  Json json = {{"flip", augment.flip}, {"cropPadding", augment.crop_padding}};
  if (const auto& crop = augment.random_resized_crop) {
    Json& encoded = json["randomResizedCrop"];
    encoded = {{"scale", {FormatDouble(crop->least_scale), FormatDouble(crop->largest_scale)}},
               {"ratio", {FormatDouble(crop->least_ratio), FormatDouble(crop->largest_ratio)}}};
    if (crop->height > 0) {
      encoded["height"] = crop->height;
      encoded["width"] = crop->width;
    }
  }
  if (const ColorJitter& jitter = augment.color_jitter; jitter.active()) {
    json["colorJitter"] = {{"brightness", FormatDouble(jitter.brightness)},
                           {"contrast", FormatDouble(jitter.contrast)},
                           {"saturation", FormatDouble(jitter.saturation)},
                           {"hue", FormatDouble(jitter.hue)}};
  }
  if (augment.mixup_alpha > 0) json["mixup"] = {{"alpha", FormatDouble(augment.mixup_alpha)}};
  return json;
}

Json EncodeDataset(const DatasetSpec& dataset) {
  Json json = {{"classes", dataset.classes},
               {"normalize",
                {{"mean", FormatDouble(dataset.normalize_mean)},
                 {"standardDeviation", FormatDouble(dataset.normalize_standard_deviation)}}},
               {"augment", EncodeAugmentation(dataset.augment)},
               {"format", EnumName(dataset.format)}};
  PutText(&json, "uri", dataset.uri);
  PutText(&json, "testUri", dataset.test_uri);
  if (!dataset.feature_shape.empty()) json["featureShape"] = dataset.feature_shape;
  if (dataset.csv) {
    json["csv"] = {{"header", dataset.csv->header}};
    PutText(&json["csv"], "labelColumn", dataset.csv->label_column);
  }
  if (dataset.parquet) {
    json["parquet"] = Json::object();
    PutText(&json["parquet"], "labelColumn", dataset.parquet->label_column);
  }
  for (const double mean : dataset.channel_mean) {
    json["normalize"]["channelMean"].push_back(FormatDouble(mean));
  }
  for (const double deviation : dataset.channel_standard_deviation) {
    json["normalize"]["channelStandardDeviation"].push_back(FormatDouble(deviation));
  }
  if (dataset.image) {
    json["image"] = {{"height", dataset.image->height},
                     {"width", dataset.image->width},
                     {"channels", dataset.image->channels}};
  }
  if (dataset.text) {
    json["text"] = {{"tokenizer", EnumName(dataset.text->tokenizer)},
                    {"maxTokens", dataset.text->max_tokens}};
    PutText(&json["text"], "vocabulary", dataset.text->vocabulary);
  }
  if (dataset.on_bad_sample != BadSamples::kFail) {
    json["onBadSample"] = EnumName(dataset.on_bad_sample);
    json["maxBadSamples"] = dataset.max_bad_samples;
  }
  if (dataset.cifar100_labels) {
    json["cifar100"] = {{"labels", EnumName(*dataset.cifar100_labels)}};
  }
  if (dataset.rendered_digits) {
    json["renderedDigits"] = {{"train", dataset.rendered_digits->train},
                              {"test", dataset.rendered_digits->test},
                              {"seed", dataset.rendered_digits->seed}};
  }
  return json;
}

Json EncodeOptimizer(const OptimizerSpec& optimizer) {
  Json json = {{"name", EnumName(optimizer.name)},
               {"learningRate", FormatDouble(optimizer.learning_rate)},
               {"learningRateScaling", EnumName(optimizer.learning_rate_scaling)},
               {"momentum", FormatDouble(optimizer.momentum)},
               {"dampening", FormatDouble(optimizer.dampening)},
               {"nesterov", optimizer.nesterov},
               {"weightDecay", FormatDouble(optimizer.weight_decay)},
               {"beta1", FormatDouble(optimizer.beta1)},
               {"beta2", FormatDouble(optimizer.beta2)},
               {"epsilon", FormatDouble(optimizer.epsilon)},
               {"amsgrad", optimizer.amsgrad},
               {"schedule",
                {{"name", EnumName(optimizer.schedule)},
                 {"warmupIterations", optimizer.warmup_iterations},
                 {"stepIterations", optimizer.step_iterations},
                 {"gamma", FormatDouble(optimizer.gamma)},
                 {"minLearningRate", FormatDouble(optimizer.min_learning_rate)}}}};
  Json clip = Json::object();
  PutDecimal(&clip, "value", optimizer.clip_value);
  PutDecimal(&clip, "globalNorm", optimizer.clip_global_norm);
  if (optimizer.power != 1) json["schedule"]["power"] = FormatDouble(optimizer.power);
  if (!clip.empty()) json["clip"] = std::move(clip);
  return json;
}

Json EncodeTraining(const TrainingSpec& training) {
  Json json = {{"epochs", Whole(training.epochs)},
               {"seed", training.seed},
               {"loss", EnumName(training.loss)},
               {"optimizer", EncodeOptimizer(training.optimizer)},
               {"synchronization", {{"mode", EnumName(training.synchronization)}}}};
  PutOptional(&json, "globalBatchSize", training.global_batch_size);
  PutOptional(&json, "maxGlobalBatchSize", training.max_global_batch_size);
  if (training.local_batch_size != 0) json["localBatchSize"] = training.local_batch_size;
  if (training.label_smoothing > 0) {
    json["labelSmoothing"] = FormatDouble(training.label_smoothing);
  }
  if (training.stop_at_loss) json["stopAt"] = {{"loss", FormatDouble(*training.stop_at_loss)}};
  if (training.evaluate_every != 1) json["evaluateEvery"] = training.evaluate_every;
  if (training.early_stopping) {
    json["earlyStopping"] = {{"metric", EnumName(training.early_stopping->metric)},
                             {"patience", training.early_stopping->patience},
                             {"minDelta", FormatDouble(training.early_stopping->min_delta)}};
  }
  for (const double weight : training.class_weights) {
    json["classWeights"].push_back(FormatDouble(weight));
  }
  if (training.micro_batch_size != 0) json["microBatchSize"] = training.micro_batch_size;
  if (training.precision != Precision::kFloat32) json["precision"] = EnumName(training.precision);
  if (training.keep_best) json["keepBest"] = {{"metric", EnumName(*training.keep_best)}};
  return json;
}

Json EncodeObjective(const Objective& objective) {
  Json json = Json::object();
  PutWhole(&json, "deadlineSeconds", objective.deadline_seconds);
  if (objective.finish_by) json["finishBy"] = FormatRfc3339(*objective.finish_by);
  PutDecimal(&json, "confidence", objective.confidence);
  PutDecimal(&json, "budget", objective.budget);
  if (objective.best_effort) json["bestEffort"] = true;
  if (objective.performance_cost_ratio) {
    Json& ratio = json["performanceCostRatio"] = Json::object();
    PutDecimal(&ratio, "weight", objective.cost_weight);
  }
  if (objective.fixed) {
    json["fixed"] = {{"functions", objective.fixed->functions},
                     {"memory", FormatMemoryMib(objective.fixed->memory_mib)}};
  }
  return json;
}

Json EncodeFunctions(const JobSpec::Functions& functions) {
  Json json = {{"min", functions.min}};
  PutOptional(&json, "max", functions.max);
  if (functions.gpu > 0) json["gpu"] = functions.gpu;
  Json memory = Json::object();
  PutMemory(&memory, "min", functions.memory_min_mib);
  PutMemory(&memory, "max", functions.memory_max_mib);
  PutMemory(&memory, "step", functions.memory_step_mib);
  if (!memory.empty()) json["memory"] = std::move(memory);
  return json;
}

Json EncodeAggregation(const AggregationSpec& aggregation) {
  Json json = {{"transport", AutoOr(aggregation.transport)},
               {"placement", AutoOr(aggregation.placement)}};
  PutOptional(&json, "shards", aggregation.shards);
  if (!aggregation.layers.empty()) json["layers"] = aggregation.layers;
  PutOptional(&json, "spread", aggregation.spread);
  PutMemory(&json, "serverMemory", aggregation.server_memory_mib);
  return json;
}

Json EncodeObjectStore(const ObjectStoreSpec& store) {
  Json json = {{"region", store.region},
               {"pathStyle", store.path_style},
               {"signPayload", store.sign_payload}};
  PutText(&json, "uri", store.uri);
  PutText(&json, "endpoint", store.endpoint);
  PutText(&json, "bucket", store.bucket);
  PutText(&json, "prefix", store.prefix);
  if (!store.credentials_secret.empty()) {
    json["credentialsSecretRef"] = {{"name", store.credentials_secret}};
  }
  if (!store.ca_secret.empty()) json["caSecretRef"] = {{"name", store.ca_secret}};
  return json;
}

Json EncodeCheckpoint(const CheckpointSpec& checkpoint) {
  Json json = {{"intervalSeconds", Whole(checkpoint.interval_seconds)}, {"keep", checkpoint.keep}};
  PutText(&json, "resumeFrom", checkpoint.resume_from);
  return json;
}

}  // namespace

Json EncodePlannedInputs(const PlannedInputs& inputs) {
  Json json = {{"objective", EncodeObjective(inputs.objective)},
               {"functions", EncodeFunctions(inputs.functions)},
               {"aggregation", EncodeAggregation(inputs.aggregation)}};
  if (inputs.epochs > 0) json["epochs"] = inputs.epochs;
  PutMemoryMib(&json, "tooSmallWorkerMemory", inputs.too_small_worker_mib);
  PutMemoryMib(&json, "tooSmallServerMemory", inputs.too_small_server_mib);
  return json;
}

Json EncodeSpec(const JobSpec& spec) {
  Json json = {{"objective", EncodeObjective(spec.objective)},
               {"functions", EncodeFunctions(spec.functions)},
               {"aggregation", EncodeAggregation(spec.aggregation)}};
  json["model"] = EncodeModel(spec.model);
  json["dataset"] = EncodeDataset(spec.dataset);
  json["training"] = EncodeTraining(spec.training);
  json["objectStore"] = EncodeObjectStore(spec.object_store);
  json["checkpoint"] = EncodeCheckpoint(spec.checkpoint);
  json["addressing"] = EnumName(spec.addressing);
  json["peerChannel"] = EnumName(spec.peer_channel);
  json["podTemplate"] = EncodePodTemplate(spec.pod_template);
  json["suspend"] = spec.suspend;
  json["backoffLimit"] = spec.backoff_limit;
  json["priority"] = spec.priority;
  json["cleanupPolicy"] = EnumName(spec.cleanup_policy);
  if (spec.backend) json["backend"] = BackendName(*spec.backend);
  if (spec.profiling != Profiling::kBeforeTraining) json["profiling"] = EnumName(spec.profiling);
  if (spec.profile) json["profile"] = EncodeWorkloadProfile(*spec.profile);
  PutText(&json, "managedBy", spec.managed_by);
  PutWhole(&json, "activeDeadlineSeconds", spec.active_deadline_seconds);
  PutWhole(&json, "ttlSecondsAfterFinished", spec.ttl_seconds_after_finished);
  return json;
}

Json EncodeJob(const Job& job) {
  Json json = {{"apiVersion", kApiVersion},
               {"kind", kJobKind},
               {"metadata", EncodeMetadata(job.metadata)},
               {"spec", EncodeSpec(job.spec)},
               {"status", EncodeStatus(job.status)}};
  return json;
}

}  // namespace lambdadnn
