// SPDX-License-Identifier: Apache-2.0
#include "operator/api/pod_template.h"

#include <algorithm>

#include "operator/api/job_decode.h"

namespace lambdadnn {
namespace {

using job_decode::Errors;
using job_decode::StringMap;

void ReadList(JsonReader& parent, const char* name, Json* out) {
  const Json* json = parent.Child(name);
  if (json == nullptr) return;
  if (!json->is_array()) return parent.Report(name, "must be a list");
  *out = *json;
}

void ReadMap(JsonReader& parent, const char* name, Json* out) {
  const Json* json = parent.Child(name);
  if (json == nullptr) return;
  if (!json->is_object()) return parent.Report(name, "must be a map of fields");
  *out = *json;
}

// Calls read(item, path) for each item of a list.
template <typename Read>
void ReadItems(JsonReader& parent, const char* name, const Read& read) {
  Json list = Json::array();
  ReadList(parent, name, &list);
  for (size_t i = 0; i < list.size(); ++i) {
    read(list[i], parent.PathOf(name) + "[" + std::to_string(i) + "]");
  }
}

ContainerTemplate ReadContainer(const Json& json, const std::string& path, Errors* errors) {
  ContainerTemplate container;
  JsonReader reader(json, path, errors);
  reader.Required("name", &container.name);
  reader.Optional("image", &container.image);
  ReadList(reader, "env", &container.env);
  ReadMap(reader, "resources", &container.resources);
  ReadList(reader, "volumeMounts", &container.volume_mounts);
  reader.Finish();
  return container;
}

void ReadPodSpec(const Json& json, const std::string& path, Errors* errors, PodTemplate* pods) {
  JsonReader reader(json, path, errors);
  reader.Optional("serviceAccountName", &pods->service_account_name);
  ReadItems(reader, "imagePullSecrets", [&](const Json& item, const std::string& at) {
    JsonReader secret(item, at, errors);
    std::string name;
    if (secret.Required("name", &name)) pods->image_pull_secrets.push_back(name);
    secret.Finish();
  });
  StringMap(reader, "nodeSelector", &pods->node_selector);
  ReadList(reader, "tolerations", &pods->tolerations);
  ReadMap(reader, "affinity", &pods->affinity);
  reader.Optional("priorityClassName", &pods->priority_class_name);
  reader.Optional("runtimeClassName", &pods->runtime_class_name);
  reader.Optional("schedulerName", &pods->scheduler_name);
  ReadList(reader, "topologySpreadConstraints", &pods->topology_spread_constraints);
  ReadList(reader, "volumes", &pods->volumes);
  ReadItems(reader, "containers", [&](const Json& item, const std::string& at) {
    pods->containers.push_back(ReadContainer(item, at, errors));
  });
  reader.Finish();
}

// Leaves out what is empty.
template <typename T>
void Put(Json* json, const char* name, const T& value) {
  if (!value.empty()) (*json)[name] = value;
}

Json EncodeContainer(const ContainerTemplate& container) {
  Json json = {{"name", container.name}};
  Put(&json, "image", container.image);
  Put(&json, "env", container.env);
  Put(&json, "resources", container.resources);
  Put(&json, "volumeMounts", container.volume_mounts);
  return json;
}

}  // namespace

const ContainerTemplate& ContainerOf(const PodTemplate& pods, std::string_view name) {
  static const ContainerTemplate kNone;
  const auto found =
      std::find_if(pods.containers.begin(), pods.containers.end(),
                   [&](const ContainerTemplate& container) { return container.name == name; });
  return found == pods.containers.end() ? kNone : *found;
}

PodTemplate PodsOfWorkers(PodTemplate pods) {
  for (auto& [label, value] : pods.workers.node_selector) pods.node_selector[label] = value;
  for (const Json& toleration : pods.workers.tolerations) pods.tolerations.push_back(toleration);
  pods.workers = {};
  return pods;
}

PodTemplate DecodePodTemplate(const Json& json, const std::string& path, Errors* errors) {
  PodTemplate pods;
  JsonReader reader(json, path, errors);
  if (const Json* metadata = reader.Child("metadata")) {
    JsonReader nested(*metadata, reader.PathOf("metadata"), errors);
    StringMap(nested, "labels", &pods.labels);
    StringMap(nested, "annotations", &pods.annotations);
    nested.Finish();
  }
  if (const Json* spec = reader.Child("spec")) {
    ReadPodSpec(*spec, reader.PathOf("spec"), errors, &pods);
  }
  if (const Json* workers = reader.Child("workers")) {
    JsonReader nested(*workers, reader.PathOf("workers"), errors);
    StringMap(nested, "nodeSelector", &pods.workers.node_selector);
    ReadList(nested, "tolerations", &pods.workers.tolerations);
    nested.Finish();
  }
  reader.Finish();
  return pods;
}

Json EncodePodTemplate(const PodTemplate& pods) {
  Json metadata = Json::object();
  Put(&metadata, "labels", pods.labels);
  Put(&metadata, "annotations", pods.annotations);
  Json spec = Json::object();
  Put(&spec, "serviceAccountName", pods.service_account_name);
  Put(&spec, "nodeSelector", pods.node_selector);
  Put(&spec, "tolerations", pods.tolerations);
  Put(&spec, "affinity", pods.affinity);
  Put(&spec, "priorityClassName", pods.priority_class_name);
  Put(&spec, "runtimeClassName", pods.runtime_class_name);
  Put(&spec, "schedulerName", pods.scheduler_name);
  Put(&spec, "topologySpreadConstraints", pods.topology_spread_constraints);
  Put(&spec, "volumes", pods.volumes);
  for (const std::string& name : pods.image_pull_secrets) {
    spec["imagePullSecrets"].push_back({{"name", name}});
  }
  for (const ContainerTemplate& container : pods.containers) {
    spec["containers"].push_back(EncodeContainer(container));
  }
  Json workers = Json::object();
  Put(&workers, "nodeSelector", pods.workers.node_selector);
  Put(&workers, "tolerations", pods.workers.tolerations);
  Json json = {{"spec", std::move(spec)}};
  Put(&json, "workers", workers);
  Put(&json, "metadata", metadata);
  return json;
}

}  // namespace lambdadnn
