// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster_view/node_capacity.h"

#include <algorithm>

#include "common/base/quantity.h"
#include "common/json/json_path.h"

namespace lambdadnn {
namespace {

constexpr double kBytesPerMib = 1024.0 * 1024.0;
constexpr double kMilliPerCpu = 1000;
// The kubelet's default.
constexpr double kDefaultPods = 110;

std::string NameOfObject(const Json& object) {
  const std::string space = TextAt(object, {"metadata", "namespace"});
  return (space.empty() ? "" : space + "/") + TextAt(object, {"metadata", "name"});
}

bool Tolerates(const Json& toleration, const Json& taint) {
  const std::string key = TextAt(toleration, {"key"});
  const std::string effect = TextAt(toleration, {"effect"});
  if (!effect.empty() && effect != TextAt(taint, {"effect"})) return false;
  const bool exists = TextAt(toleration, {"operator"}) == "Exists";
  if (key.empty()) return exists;
  if (key != TextAt(taint, {"key"})) return false;
  return exists || TextAt(toleration, {"value"}) == TextAt(taint, {"value"});
}

bool KeepsPodsAway(const Json& taint) {
  const std::string effect = TextAt(taint, {"effect"});
  return effect == "NoSchedule" || effect == "NoExecute";
}

PodResources RequestsOf(const Json& container, const std::string& pod,
                        std::vector<std::string>* unknown) {
  const Json* requests = FindPath(container, {"resources", "requests"});
  const std::string what = "requests of pod " + pod;
  PodResources found;
  found.memory_mib = ReadAmount(requests, "memory", what, unknown);
  found.milli_cpu = ReadAmount(requests, "cpu", what, unknown);
  found.gpus = ReadAmount(requests, kGpuResource, what, unknown);
  return found;
}

void TakeLarger(const PodResources& other, PodResources* resources) {
  resources->memory_mib = std::max(resources->memory_mib, other.memory_mib);
  resources->milli_cpu = std::max(resources->milli_cpu, other.milli_cpu);
  resources->gpus = std::max(resources->gpus, other.gpus);
}

const Json& ListAt(const Json& value, std::initializer_list<std::string_view> path) {
  static const Json none = Json::array();
  const Json* found = FindPath(value, path);
  return found != nullptr && found->is_array() ? *found : none;
}

}  // namespace

PodResources& PodResources::operator+=(const PodResources& other) {
  memory_mib += other.memory_mib;
  milli_cpu += other.milli_cpu;
  pods += other.pods;
  gpus += other.gpus;
  return *this;
}

PodResources operator-(const PodResources& a, const PodResources& b) {
  return {std::max(0.0, a.memory_mib - b.memory_mib), std::max(0.0, a.milli_cpu - b.milli_cpu),
          std::max(0.0, a.pods - b.pods), std::max(0.0, a.gpus - b.gpus)};
}

double ReadAmount(const Json* amounts, const std::string& resource, const std::string& what,
                  std::vector<std::string>* unknown) {
  const Json* amount = amounts == nullptr ? nullptr : FindPath(*amounts, {resource});
  if (amount == nullptr) return 0;
  Result<double> value = amount->is_number() ? Result<double>(amount->get<double>())
                         : amount->is_string()
                             ? ParseQuantity(amount->get<std::string>())
                             : InvalidArgumentError("it is neither text nor a number");
  if (!value.ok() || *value < 0) {
    unknown->push_back(what + ": " + resource + " is not counted, " +
                       (value.ok() ? "it is negative" : value.status().message()));
    return 0;
  }
  if (resource.ends_with("memory")) return *value / kBytesPerMib;
  return resource.ends_with("cpu") ? *value * kMilliPerCpu : *value;
}

std::optional<NodeCapacity> ReadNode(const Json& node, std::vector<std::string>* unknown) {
  if (IsTrueAt(node, {"spec", "unschedulable"})) return std::nullopt;
  NodeCapacity capacity;
  capacity.name = TextAt(node, {"metadata", "name"});
  const Json* amounts = FindPath(node, {"status", "allocatable"});
  const std::string what = "node " + capacity.name;
  capacity.allocatable.memory_mib = ReadAmount(amounts, "memory", what, unknown);
  capacity.allocatable.milli_cpu = ReadAmount(amounts, "cpu", what, unknown);
  capacity.allocatable.gpus = ReadAmount(amounts, kGpuResource, what, unknown);
  const double pods = ReadAmount(amounts, "pods", what, unknown);
  capacity.allocatable.pods = pods > 0 ? pods : kDefaultPods;
  const Json* labels = FindPath(node, {"metadata", "labels"});
  if (labels != nullptr && labels->is_object()) capacity.labels = *labels;
  capacity.taints = ListAt(node, {"spec", "taints"});
  if (capacity.allocatable.memory_mib <= 0) return std::nullopt;
  return capacity;
}

bool Admits(const NodeCapacity& node, const PodTemplate& pods) {
  for (const auto& [label, value] : pods.node_selector) {
    const auto found = node.labels.find(label);
    if (found == node.labels.end() || *found != value) return false;
  }
  return std::none_of(node.taints.begin(), node.taints.end(), [&](const Json& taint) {
    return KeepsPodsAway(taint) &&
           std::none_of(pods.tolerations.begin(), pods.tolerations.end(),
                        [&](const Json& toleration) { return Tolerates(toleration, taint); });
  });
}

bool AdmitsSome(const NodeCapacity& node) {
  return std::none_of(node.taints.begin(), node.taints.end(), [](const Json& taint) {
    const std::string key = TextAt(taint, {"key"});
    return KeepsPodsAway(taint) && (key.starts_with("node.kubernetes.io/") ||
                                    key == "node-role.kubernetes.io/control-plane" ||
                                    key == "node-role.kubernetes.io/master");
  });
}

std::string NodeKindOf(const Json& labels) {
  static constexpr const char* kTypes[] = {"node.kubernetes.io/instance-type",
                                           "beta.kubernetes.io/instance-type"};
  for (const char* type : kTypes) {
    if (std::string kind = TextAt(labels, {type}); !kind.empty()) return kind;
  }
  static constexpr const char* kParts[] = {"feature.node.kubernetes.io/cpu-model.vendor_id",
                                           "feature.node.kubernetes.io/cpu-model.family",
                                           "feature.node.kubernetes.io/cpu-model.id"};
  std::string model;
  for (const char* part : kParts) {
    const std::string text = TextAt(labels, {part});
    if (text.empty()) return "";
    model += (model.empty() ? "" : " ") + text;
  }
  return model;
}

PodResources ReadPodResources(const Json& pod, std::vector<std::string>* unknown) {
  const std::string phase = TextAt(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") return {};
  const std::string name = NameOfObject(pod);
  PodResources all;  // of the containers, and what of initialization runs on beside them
  for (const Json& container : ListAt(pod, {"spec", "containers"})) {
    all += RequestsOf(container, name, unknown);
  }
  PodResources beside;
  PodResources most;  // of what runs before them, one after another
  for (const Json& container : ListAt(pod, {"spec", "initContainers"})) {
    PodResources own = RequestsOf(container, name, unknown);
    const bool stays = TextAt(container, {"restartPolicy"}) == "Always";
    if (stays) {
      beside += own;
      TakeLarger(beside, &most);
    } else {
      own += beside;
      TakeLarger(own, &most);
    }
  }
  all += beside;
  TakeLarger(most, &all);
  // Pod-level requests, if any, replace those of its containers.
  const Json* spec = FindPath(pod, {"spec"});
  if (spec != nullptr) TakeLarger(RequestsOf(*spec, name, unknown), &all);
  const Json* overhead = FindPath(pod, {"spec", "overhead"});
  all.memory_mib += ReadAmount(overhead, "memory", "overhead of pod " + name, unknown);
  all.milli_cpu += ReadAmount(overhead, "cpu", "overhead of pod " + name, unknown);
  all.pods = 1;
  return all;
}

}  // namespace lambdadnn
