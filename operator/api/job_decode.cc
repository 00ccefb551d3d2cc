// SPDX-License-Identifier: Apache-2.0
#include "common/base/text.h"
#include "operator/api/job_codec.h"
#include "operator/api/quantity.h"
#include "operator/api/status_codec.h"
#include "operator/api/workload_profile_codec.h"

namespace lambdadnn {
namespace {

using Errors = std::vector<FieldError>;

// Decimals are text in this API, since YAML and JSON readers disagree about floats.
bool ParseDecimal(JsonReader& reader, const char* name, const Json& value, double* out) {
  if (value.is_number()) {
    reader.Report(name, "is a bare number; decimals are text here: write \"" + value.dump() + "\"");
    return false;
  }
  std::optional<double> number;
  if (value.is_string()) number = ParseDouble(value.get_ref<const std::string&>());
  if (!number) {
    reader.Report(name, "must be a decimal number in quotes, such as \"0.5\"");
    return false;
  }
  *out = *number;
  return true;
}

void Decimal(JsonReader& reader, const char* name, double* out) {
  if (const Json* value = reader.Child(name)) ParseDecimal(reader, name, *value, out);
}

void Decimal(JsonReader& reader, const char* name, std::optional<double>* out) {
  double number = 0;
  if (const Json* value = reader.Child(name)) {
    if (ParseDecimal(reader, name, *value, &number)) *out = number;
  }
}

bool ParseMemory(JsonReader& reader, const char* name, int* out) {
  const Json* value = reader.Child(name);
  if (value == nullptr) return false;
  if (!value->is_string()) {
    reader.Report(name, "must be an amount of memory in quotes, such as \"1728Mi\"");
    return false;
  }
  auto memory = ParseMemoryMib(value->get_ref<const std::string&>());
  if (!memory.ok()) {
    reader.Report(name, memory.status().message());
    return false;
  }
  *out = *memory;
  return true;
}

void Memory(JsonReader& reader, const char* name, std::optional<int>* out) {
  int memory_mib = 0;
  if (ParseMemory(reader, name, &memory_mib)) *out = memory_mib;
}

// Whole numbers that the rest of the code keeps as doubles.
void Whole(JsonReader& reader, const char* name, double* out) {
  int64_t number = 0;
  if (reader.Optional(name, &number)) *out = static_cast<double>(number);
}

void Whole(JsonReader& reader, const char* name, std::optional<double>* out) {
  int64_t number = 0;
  if (reader.Optional(name, &number)) *out = static_cast<double>(number);
}

void SecretName(JsonReader& parent, const char* name, Errors* errors, std::string* out) {
  const Json* json = parent.Child(name);
  if (json == nullptr) return;
  JsonReader reader(*json, parent.PathOf(name), errors);
  reader.Optional("name", out);
  reader.Finish();
}

void StringMap(JsonReader& parent, const char* name, std::map<std::string, std::string>* out) {
  const Json* json = parent.Child(name);
  if (json == nullptr) return;
  if (!json->is_object()) return parent.Report(name, "must be a map of text to text");
  for (const auto& [key, value] : json->items()) {
    if (value.is_string()) {
      (*out)[key] = value.get<std::string>();
    } else {
      parent.Report(std::string(name) + "." + key, "must be text; put it in quotes");
    }
  }
}

ObjectMeta DecodeMetadata(const Json& json, Errors* errors) {
  ObjectMeta metadata;
  JsonReader reader(json, "metadata", errors);
  reader.Optional("name", &metadata.name);
  reader.Optional("namespace", &metadata.namespace_name);
  reader.Optional("uid", &metadata.uid);
  reader.Optional("resourceVersion", &metadata.resource_version);
  reader.Optional("generation", &metadata.generation);
  reader.Optional("creationTimestamp", &metadata.creation_timestamp);
  reader.Optional("deletionTimestamp", &metadata.deletion_timestamp);
  reader.Optional("finalizers", &metadata.finalizers);
  StringMap(reader, "labels", &metadata.labels);
  StringMap(reader, "annotations", &metadata.annotations);
  return metadata;  // the rest (managedFields, ownerReferences, ...) belongs to the server
}

// One parameter of a model, or one entry of its list: decimals become numbers.
bool DecodeParameter(const Json& value, const std::string& path, Errors* errors, Json* out) {
  if (value.is_boolean() || value.is_number_integer()) {
    *out = value;
    return true;
  }
  if (value.is_string()) {
    if (const auto number = ParseDouble(value.get_ref<const std::string&>())) {
      *out = *number;
      return true;
    }
  }
  errors->push_back(
      {path, value.is_number_float()
                 ? "is a bare number; decimals are text here: write \"" + value.dump() + "\""
                 : "must be a whole number, a decimal in quotes, true or false, or a "
                   "list of such"});
  return false;
}

Json DecodeParameters(const Json& json, const std::string& path, Errors* errors) {
  Json parameters = Json::object();
  for (const auto& [name, value] : json.items()) {
    const std::string name_path = path + "." + name;
    Json decoded;
    if (value.is_array()) {
      decoded = Json::array();
      for (size_t i = 0; i < value.size(); ++i) {
        Json entry;
        if (DecodeParameter(value[i], name_path + "[" + std::to_string(i) + "]", errors, &entry)) {
          decoded.push_back(std::move(entry));
        }
      }
    } else if (!DecodeParameter(value, name_path, errors, &decoded)) {
      continue;
    }
    parameters[name] = std::move(decoded);
  }
  return parameters;
}

ModelSpec DecodeModel(const Json& json, Errors* errors) {
  ModelSpec model;
  JsonReader reader(json, "spec.model", errors);
  if (const Json* builtin = reader.Child("builtin")) {
    JsonReader nested(*builtin, reader.PathOf("builtin"), errors);
    nested.Required("name", &model.builtin_name);
    if (const Json* parameters = nested.Child("parameters")) {
      if (parameters->is_object()) {
        model.builtin_parameters =
            DecodeParameters(*parameters, nested.PathOf("parameters"), errors);
      } else {
        nested.Report("parameters", "must be a map of fields");
      }
    }
    nested.Finish();
  }
  if (const Json* torch_script = reader.Child("torchScript")) {
    JsonReader nested(*torch_script, reader.PathOf("torchScript"), errors);
    nested.Required("uri", &model.torch_script_uri);
    nested.Finish();
  }
  reader.Finish();
  return model;
}

DatasetSpec DecodeDataset(const Json& json, Errors* errors) {
  DatasetSpec dataset;
  JsonReader reader(json, "spec.dataset", errors);
  reader.Optional("uri", &dataset.uri);
  reader.Optional("testUri", &dataset.test_uri);
  reader.Optional("format", &dataset.format);
  reader.Optional("classes", &dataset.classes);
  reader.Optional("featureShape", &dataset.feature_shape);
  if (const Json* normalize = reader.Child("normalize")) {
    JsonReader nested(*normalize, reader.PathOf("normalize"), errors);
    Decimal(nested, "mean", &dataset.normalize_mean);
    Decimal(nested, "standardDeviation", &dataset.normalize_standard_deviation);
    nested.Finish();
  }
  if (const Json* augment = reader.Child("augment")) {
    JsonReader nested(*augment, reader.PathOf("augment"), errors);
    nested.Optional("flip", &dataset.augment_flip);
    nested.Optional("cropPadding", &dataset.augment_crop_padding);
    nested.Finish();
  }
  if (const Json* csv = reader.Child("csv")) {
    JsonReader nested(*csv, reader.PathOf("csv"), errors);
    nested.Optional("labelColumn", &dataset.label_column);
    nested.Optional("header", &dataset.csv_header);
    nested.Finish();
  }
  if (const Json* digits = reader.Child("renderedDigits")) {
    DatasetSpec::RenderedDigits rendered;
    JsonReader nested(*digits, reader.PathOf("renderedDigits"), errors);
    nested.Optional("train", &rendered.train);
    nested.Optional("test", &rendered.test);
    nested.Optional("seed", &rendered.seed);
    nested.Finish();
    dataset.rendered_digits = rendered;
    if (dataset.format.empty()) dataset.format = "idx";
  }
  reader.Finish();
  return dataset;
}

OptimizerSpec DecodeOptimizer(const Json& json, Errors* errors) {
  OptimizerSpec optimizer;
  JsonReader reader(json, "spec.training.optimizer", errors);
  reader.Optional("name", &optimizer.name);
  Decimal(reader, "learningRate", &optimizer.learning_rate);
  reader.Optional("learningRateScaling", &optimizer.learning_rate_scaling);
  Decimal(reader, "momentum", &optimizer.momentum);
  Decimal(reader, "dampening", &optimizer.dampening);
  reader.Optional("nesterov", &optimizer.nesterov);
  Decimal(reader, "weightDecay", &optimizer.weight_decay);
  Decimal(reader, "beta1", &optimizer.beta1);
  Decimal(reader, "beta2", &optimizer.beta2);
  Decimal(reader, "epsilon", &optimizer.epsilon);
  reader.Optional("amsgrad", &optimizer.amsgrad);
  if (const Json* schedule = reader.Child("schedule")) {
    JsonReader nested(*schedule, reader.PathOf("schedule"), errors);
    nested.Optional("name", &optimizer.schedule);
    nested.Optional("warmupIterations", &optimizer.warmup_iterations);
    nested.Optional("stepIterations", &optimizer.step_iterations);
    Decimal(nested, "gamma", &optimizer.gamma);
    Decimal(nested, "minLearningRate", &optimizer.min_learning_rate);
    nested.Finish();
  }
  if (const Json* clip = reader.Child("clip")) {
    JsonReader nested(*clip, reader.PathOf("clip"), errors);
    Decimal(nested, "value", &optimizer.clip_value);
    Decimal(nested, "globalNorm", &optimizer.clip_global_norm);
    nested.Finish();
  }
  reader.Finish();
  return optimizer;
}

TrainingSpec DecodeTraining(const Json& json, Errors* errors) {
  TrainingSpec training;
  JsonReader reader(json, "spec.training", errors);
  Whole(reader, "epochs", &training.epochs);
  reader.Optional("globalBatchSize", &training.global_batch_size);
  reader.Optional("maxGlobalBatchSize", &training.max_global_batch_size);
  reader.Optional("localBatchSize", &training.local_batch_size);
  reader.Optional("seed", &training.seed);
  reader.Optional("loss", &training.loss);
  if (const Json* optimizer = reader.Child("optimizer")) {
    training.optimizer = DecodeOptimizer(*optimizer, errors);
  }
  if (const Json* synchronization = reader.Child("synchronization")) {
    JsonReader nested(*synchronization, reader.PathOf("synchronization"), errors);
    nested.Optional("mode", &training.synchronization);
    nested.Finish();
  }
  if (const Json* stop_at = reader.Child("stopAt")) {
    JsonReader nested(*stop_at, reader.PathOf("stopAt"), errors);
    Decimal(nested, "loss", &training.stop_at_loss);
    nested.Finish();
  }
  reader.Finish();
  return training;
}

Objective DecodeObjective(const Json& json, Errors* errors) {
  Objective objective;
  JsonReader reader(json, "spec.objective", errors);
  Whole(reader, "deadlineSeconds", &objective.deadline_seconds);
  Decimal(reader, "budget", &objective.budget);
  if (const Json* ratio = reader.Child("performanceCostRatio")) {
    JsonReader nested(*ratio, reader.PathOf("performanceCostRatio"), errors);
    nested.Finish();
    objective.performance_cost_ratio = true;
  }
  if (const Json* fixed = reader.Child("fixed")) {
    Objective::Fixed size;
    JsonReader nested(*fixed, reader.PathOf("fixed"), errors);
    nested.Required("functions", &size.functions);
    if (nested.Has("memory")) {
      ParseMemory(nested, "memory", &size.memory_mib);
    } else {
      nested.Required("memory", &size.memory_mib);
    }
    nested.Finish();
    objective.fixed = size;
  }
  reader.Finish();
  return objective;
}

JobSpec::Functions DecodeFunctions(const Json& json, Errors* errors) {
  JobSpec::Functions functions;
  JsonReader reader(json, "spec.functions", errors);
  reader.Optional("min", &functions.min);
  reader.Optional("max", &functions.max);
  if (const Json* memory = reader.Child("memory")) {
    JsonReader nested(*memory, reader.PathOf("memory"), errors);
    Memory(nested, "min", &functions.memory_min_mib);
    Memory(nested, "max", &functions.memory_max_mib);
    Memory(nested, "step", &functions.memory_step_mib);
    nested.Finish();
  }
  reader.Finish();
  return functions;
}

AggregationSpec DecodeAggregationSpec(const Json& json, Errors* errors) {
  AggregationSpec aggregation;
  JsonReader reader(json, "spec.aggregation", errors);
  reader.Optional("transport", &aggregation.transport);
  reader.Optional("placement", &aggregation.placement);
  reader.Optional("shards", &aggregation.shards);
  reader.Optional("layers", &aggregation.layers);
  reader.Optional("spread", &aggregation.spread);
  Memory(reader, "serverMemory", &aggregation.server_memory_mib);
  reader.Finish();
  return aggregation;
}

ObjectStoreSpec DecodeObjectStore(const Json& json, Errors* errors) {
  ObjectStoreSpec store;
  JsonReader reader(json, "spec.objectStore", errors);
  reader.Optional("uri", &store.uri);
  reader.Optional("endpoint", &store.endpoint);
  reader.Optional("bucket", &store.bucket);
  reader.Optional("prefix", &store.prefix);
  reader.Optional("region", &store.region);
  reader.Optional("pathStyle", &store.path_style);
  SecretName(reader, "credentialsSecretRef", errors, &store.credentials_secret);
  SecretName(reader, "caSecretRef", errors, &store.ca_secret);
  reader.Finish();
  return store;
}

CheckpointSpec DecodeCheckpoint(const Json& json, Errors* errors) {
  CheckpointSpec checkpoint;
  JsonReader reader(json, "spec.checkpoint", errors);
  Whole(reader, "intervalSeconds", &checkpoint.interval_seconds);
  reader.Optional("keep", &checkpoint.keep);
  reader.Optional("resumeFrom", &checkpoint.resume_from);
  reader.Finish();
  return checkpoint;
}

JobSpec DecodeSpec(const Json& json, Errors* errors) {
  JobSpec spec;
  JsonReader reader(json, "spec", errors);
  if (const Json* model = reader.Child("model")) spec.model = DecodeModel(*model, errors);
  if (const Json* dataset = reader.Child("dataset")) {
    spec.dataset = DecodeDataset(*dataset, errors);
  }
  if (const Json* training = reader.Child("training")) {
    spec.training = DecodeTraining(*training, errors);
  }
  if (const Json* objective = reader.Child("objective")) {
    spec.objective = DecodeObjective(*objective, errors);
  }
  if (const Json* functions = reader.Child("functions")) {
    spec.functions = DecodeFunctions(*functions, errors);
  }
  if (const Json* aggregation = reader.Child("aggregation")) {
    spec.aggregation = DecodeAggregationSpec(*aggregation, errors);
  }
  if (const Json* profile = reader.Child("profile")) {
    spec.profile = DecodeWorkloadProfile(*profile, "spec.profile", errors);
  }
  if (const Json* store = reader.Child("objectStore")) {
    spec.object_store = DecodeObjectStore(*store, errors);
  }
  if (const Json* checkpoint = reader.Child("checkpoint")) {
    spec.checkpoint = DecodeCheckpoint(*checkpoint, errors);
  }
  reader.Optional("backend", &spec.backend);
  if (const Json* runtime = reader.Child("runtime")) {
    if (runtime->is_object()) {
      spec.runtime = *runtime;
    } else {
      reader.Report("runtime", "must be a map of fields");
    }
  }
  reader.Optional("suspend", &spec.suspend);
  reader.Optional("managedBy", &spec.managed_by);
  reader.Optional("backoffLimit", &spec.backoff_limit);
  Whole(reader, "activeDeadlineSeconds", &spec.active_deadline_seconds);
  Whole(reader, "ttlSecondsAfterFinished", &spec.ttl_seconds_after_finished);
  reader.Optional("cleanupPolicy", &spec.cleanup_policy);
  reader.Finish();
  return spec;
}

}  // namespace

Job DecodeJob(const Json& object, Errors* errors) {
  Job job;
  JsonReader reader(object, "", errors);
  if (!object.is_object()) return job;
  std::string api_version;
  std::string kind;
  if (reader.Required("apiVersion", &api_version) && api_version != kApiVersion) {
    reader.Report("apiVersion", std::string("must be ") + kApiVersion);
  }
  if (reader.Required("kind", &kind) && kind != kJobKind) {
    reader.Report("kind", std::string("must be ") + kJobKind);
  }
  if (const Json* metadata = reader.Child("metadata")) {
    job.metadata = DecodeMetadata(*metadata, errors);
  }
  if (const Json* spec = reader.Child("spec")) {
    job.spec = DecodeSpec(*spec, errors);
  } else {
    reader.Report("spec", "is required; add it");
  }
  if (const Json* status = reader.Child("status")) {
    job.status = DecodeStatus(*status, errors);
  }
  reader.Finish();
  return job;
}

Result<Job> DecodeJob(const Json& object) {
  std::vector<FieldError> errors;
  Job job = DecodeJob(object, &errors);
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return job;
}

}  // namespace lambdadnn
