// SPDX-License-Identifier: Apache-2.0
#include "operator/api/job_decode.h"

#include <algorithm>

#include "common/json/memory_field.h"
#include "common/json/unknown_field.h"
#include "common/json/unknown_value.h"
#include "operator/api/job_codec.h"
#include "operator/api/status_codec.h"
#include "operator/api/workload_profile_codec.h"

namespace lambdadnn {
namespace {

using job_decode::Decimal;
using job_decode::Errors;
using job_decode::Memory;
using job_decode::StringMap;
using job_decode::Time;
using job_decode::Whole;

void SecretName(JsonReader& parent, const char* name, Errors* errors, std::string* out) {
  const Json* json = parent.Child(name);
  if (json == nullptr) return;
  JsonReader reader(*json, parent.PathOf(name), errors);
  reader.Optional("name", out);
  reader.Finish();
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

Objective DecodeObjective(const Json& json, const std::string& path, Errors* errors) {
  Objective objective;
  JsonReader reader(json, path, errors);
  Whole(reader, "deadlineSeconds", &objective.deadline_seconds);
  Time(reader, "finishBy", &objective.finish_by);
  Decimal(reader, "confidence", &objective.confidence);
  Decimal(reader, "budget", &objective.budget);
  reader.Optional("bestEffort", &objective.best_effort);
  if (const Json* ratio = reader.Child("performanceCostRatio")) {
    JsonReader nested(*ratio, reader.PathOf("performanceCostRatio"), errors);
    Decimal(nested, "weight", &objective.cost_weight);
    nested.Finish();
    objective.performance_cost_ratio = true;
  }
  if (const Json* fixed = reader.Child("fixed")) {
    Objective::Fixed size;
    JsonReader nested(*fixed, reader.PathOf("fixed"), errors);
    nested.Required("functions", &size.functions);
    RequireMemoryMib(nested, "memory", &size.memory_mib);
    nested.Finish();
    objective.fixed = size;
  }
  reader.Finish();
  return objective;
}

JobSpec::Functions DecodeFunctions(const Json& json, const std::string& path, Errors* errors) {
  JobSpec::Functions functions;
  JsonReader reader(json, path, errors);
  reader.Optional("min", &functions.min);
  reader.Optional("max", &functions.max);
  reader.Optional("gpu", &functions.gpu);
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

// "Auto", or a value of the enum.
template <NamedEnum Enum>
void AutoOr(JsonReader& reader, const char* name, std::optional<Enum>* out) {
  const Json* value = reader.Child(name);
  if (value != nullptr && *value != kAuto) reader.Optional(name, out);
}

void DecodeBackend(JsonReader& reader, std::optional<BackendKind>* out) {
  std::string name;
  if (!reader.Optional("backend", &name)) return;
  *out = FindBackend(name);
  if (out->has_value()) return;
  std::vector<std::string> names;
  for (const BackendKind kind : BackendKinds()) names.push_back(BackendName(kind));
  reader.Report("backend", UnknownValue(name, names));
}

AggregationSpec DecodeAggregationSpec(const Json& json, const std::string& path, Errors* errors) {
  AggregationSpec aggregation;
  JsonReader reader(json, path, errors);
  AutoOr(reader, "transport", &aggregation.transport);
  AutoOr(reader, "placement", &aggregation.placement);
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
  reader.Optional("signPayload", &store.sign_payload);
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
  if (const Json* model = reader.Child("model"))
    spec.model = job_decode::DecodeModel(*model, errors);
  if (const Json* dataset = reader.Child("dataset")) {
    spec.dataset = job_decode::DecodeDataset(*dataset, errors);
  }
  if (const Json* training = reader.Child("training")) {
    spec.training = job_decode::DecodeTraining(*training, errors);
  }
  if (const Json* objective = reader.Child("objective")) {
    spec.objective = DecodeObjective(*objective, reader.PathOf("objective"), errors);
  }
  if (const Json* functions = reader.Child("functions")) {
    spec.functions = DecodeFunctions(*functions, reader.PathOf("functions"), errors);
  }
  if (const Json* aggregation = reader.Child("aggregation")) {
    spec.aggregation = DecodeAggregationSpec(*aggregation, reader.PathOf("aggregation"), errors);
  }
  if (const Json* profile = reader.Child("profile")) {
    spec.profile = DecodeWorkloadProfile(*profile, "spec.profile", errors);
  }
  reader.Optional("profiling", &spec.profiling);
  if (const Json* store = reader.Child("objectStore")) {
    spec.object_store = DecodeObjectStore(*store, errors);
  }
  if (const Json* checkpoint = reader.Child("checkpoint")) {
    spec.checkpoint = DecodeCheckpoint(*checkpoint, errors);
  }
  DecodeBackend(reader, &spec.backend);
  reader.Child("runtime");  // removed: job_rules.cc refuses it with the new names
  reader.Optional("addressing", &spec.addressing);
  reader.Optional("peerChannel", &spec.peer_channel);
  if (const Json* pods = reader.Child("podTemplate")) {
    spec.pod_template = DecodePodTemplate(*pods, reader.PathOf("podTemplate"), errors);
  }
  reader.Optional("suspend", &spec.suspend);
  reader.Optional("managedBy", &spec.managed_by);
  reader.Optional("backoffLimit", &spec.backoff_limit);
  reader.Optional("priority", &spec.priority);
  Whole(reader, "activeDeadlineSeconds", &spec.active_deadline_seconds);
  Whole(reader, "ttlSecondsAfterFinished", &spec.ttl_seconds_after_finished);
  reader.Optional("cleanupPolicy", &spec.cleanup_policy);
  reader.Finish();
  return spec;
}

// `known`: another version of the object, read without a problem; or null.
Job DecodeVersion(const Json& object, const Job* known, Errors* errors) {
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
    const bool same = known != nullptr && known->metadata.uid == job.metadata.uid &&
                      known->metadata.generation == job.metadata.generation &&
                      job.metadata.generation != 0;
    job.spec = same ? known->spec : DecodeSpec(*spec, errors);
  } else {
    reader.Report("spec", "is required; add it");
  }
  if (const Json* status = reader.Child("status")) {
    job.status = DecodeStatus(*status, errors);
  }
  reader.Finish();
  return job;
}

}  // namespace

std::optional<PlannedInputs> DecodePlannedInputs(const Json& json) {
  PlannedInputs inputs;
  Errors errors;
  JsonReader reader(json, "status.execution.plannedFor", &errors);
  if (const Json* objective = reader.Child("objective")) {
    inputs.objective = DecodeObjective(*objective, reader.PathOf("objective"), &errors);
  }
  if (const Json* functions = reader.Child("functions")) {
    inputs.functions = DecodeFunctions(*functions, reader.PathOf("functions"), &errors);
  }
  if (const Json* aggregation = reader.Child("aggregation")) {
    inputs.aggregation = DecodeAggregationSpec(*aggregation, reader.PathOf("aggregation"), &errors);
  }
  reader.Optional("epochs", &inputs.epochs);
  ReadMemoryMib(reader, "tooSmallWorkerMemory", &inputs.too_small_worker_mib);
  ReadMemoryMib(reader, "tooSmallServerMemory", &inputs.too_small_server_mib);
  if (!std::all_of(errors.begin(), errors.end(), IsUnknownField)) return std::nullopt;
  return inputs;
}

Job DecodeJob(const Json& object, Errors* errors) { return DecodeVersion(object, nullptr, errors); }

Job DecodeJob(const Json& object, const Job& known, Errors* errors) {
  return DecodeVersion(object, &known, errors);
}

Result<Job> DecodeJob(const Json& object) {
  std::vector<FieldError> errors;
  Job job = DecodeJob(object, &errors);
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return job;
}

}  // namespace lambdadnn
