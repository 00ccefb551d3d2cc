// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/node_usage.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "common/json/json_path.h"
#include "operator/kube/list_all.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

constexpr const char* kNodesUnknown = "the nodes' capacity";
constexpr const char* kPodsUnknown = "the requests of other pods on the nodes";
constexpr double kBytesPerMib = 1024.0 * 1024.0;
constexpr double kMilliPerCpu = 1000;

void AddNode(const Json& node, NodeUsage* usage) {
  if (!usage->nodes.has_value()) usage->nodes.emplace();  // of a server without nodes none is known
  if (auto capacity = ReadNode(node, &usage->unknown)) {
    usage->nodes->push_back(*std::move(capacity));
  }
}

void AddPod(const Json& pod, const std::vector<std::string>& namespaces, NodeUsage* usage) {
  const std::string space = NameOf(pod).namespace_name;
  const bool own_place = namespaces.empty() ||
                         std::find(namespaces.begin(), namespaces.end(), space) != namespaces.end();
  const bool own = own_place && !LabelText(pod, kJobUidLabel).empty();
  const Json* node = FindPath(pod, {"spec", "nodeName"});
  const bool bound = node != nullptr && node->is_string() && !node->get<std::string>().empty();
  if (!own && !bound) return;
  const PodResources requests = ReadPodResources(pod, &usage->unknown);
  if (own) {
    (*usage->own)[space] += requests;
  } else {
    usage->others[node->get<std::string>()] += requests;
  }
}

// Only these parts of `*object`.
void Keep(std::initializer_list<std::initializer_list<std::string_view>> paths, Json* object) {
  Json kept = Json::object();
  for (const auto& path : paths) {
    const Json* const from = FindPath(*object, path);
    if (from == nullptr) continue;
    Json* to = &kept;
    for (const std::string_view name : path) to = &(*to)[name];
    *to = *from;
  }
  *object = std::move(kept);
}

void ReduceNode(Json* node) {
  Keep({{"metadata", "name"},
        {"metadata", "uid"},
        {"metadata", "resourceVersion"},
        {"metadata", "labels"},
        {"spec", "unschedulable"},
        {"spec", "taints"},
        {"status", "allocatable"}},
       node);
}

// False, with a sentence, where the rights do not allow to read; an error where nothing is known
// yet.
Result<bool> IsKnown(const Informer& informer, const char* what, NodeUsage* usage) {
  const Status problem = informer.Problem();
  if (MayNotRead(problem)) {
    usage->unknown.push_back(std::string(what) + ": " + problem.message());
    return false;
  }
  if (informer.synced()) return true;
  return UnavailableError(std::string(what) + " is not known yet" +
                          (problem.ok() ? "" : ": " + problem.message()));
}

}  // namespace

bool MayNotRead(const Status& status) {
  return status.code() == StatusCode::kPermissionDenied || status.code() == StatusCode::kNotFound;
}

Result<NodeUsage> ListNodeUsage(KubeClient& kube, const std::vector<std::string>& namespaces) {
  NodeUsage usage;
  const auto list = [&](const ResourceType& type, const char* what,
                        const std::function<void(const Json&)>& add) -> Result<bool> {
    const Status listed = ForEachListed(kube, type, "", "", add);
    if (listed.ok()) return true;
    if (!MayNotRead(listed)) return listed;
    usage.unknown.push_back(std::string(what) + ": " + listed.message());
    return false;
  };
  LDNN_ASSIGN_OR_RETURN(const bool nodes, list(NodeType(), kNodesUnknown,
                                               [&](const Json& node) { AddNode(node, &usage); }));
  if (!nodes || !usage.nodes.has_value()) return usage;
  usage.own.emplace();
  LDNN_ASSIGN_OR_RETURN(const bool pods, list(PodType(), kPodsUnknown, [&](const Json& pod) {
                          AddPod(pod, namespaces, &usage);
                        }));
  if (!pods) usage.own.reset();
  return usage;
}

WatchedNodeUsage::WatchedNodeUsage(KubeClient& kube, Runtime& runtime,
                                   std::vector<std::string> namespaces)
    : namespaces_(std::move(namespaces)),
      nodes_(kube, runtime, InformerOptions{.type = NodeType(), .transform = ReduceNode}),
      pods_(kube, runtime, InformerOptions{.type = PodType(), .transform = ReducePod}) {
  nodes_.Start();
  pods_.Start();
}

void WatchedNodeUsage::ReducePod(Json* pod) {
  std::vector<std::string> unknown;
  const PodResources requests = ReadPodResources(*pod, &unknown);
  // Of one that cannot be read the sentences are needed each time.
  if (!unknown.empty()) return;
  Keep({{"metadata", "name"},
        {"metadata", "namespace"},
        {"metadata", "uid"},
        {"metadata", "resourceVersion"},
        {"metadata", "labels", kJobUidLabel},
        {"spec", "nodeName"},
        {"status", "phase"}},
       pod);
  (*pod)["spec"]["resources"]["requests"] = {{"memory", requests.memory_mib * kBytesPerMib},
                                             {"cpu", requests.milli_cpu / kMilliPerCpu},
                                             {kGpuResource, requests.gpus}};
}

Result<NodeUsage> WatchedNodeUsage::Read() const {
  NodeUsage usage;
  LDNN_ASSIGN_OR_RETURN(const bool nodes, IsKnown(nodes_, kNodesUnknown, &usage));
  if (!nodes) return usage;
  for (const std::shared_ptr<const Json>& node : nodes_.cache().All()) AddNode(*node, &usage);
  if (!usage.nodes.has_value()) return usage;
  LDNN_ASSIGN_OR_RETURN(const bool pods, IsKnown(pods_, kPodsUnknown, &usage));
  if (!pods) return usage;
  usage.own.emplace();
  for (const std::shared_ptr<const Json>& pod : pods_.cache().All()) {
    AddPod(*pod, namespaces_, &usage);
  }
  return usage;
}

std::optional<std::string> WatchedNodeUsage::NodeKind(const std::string& node) const {
  const std::shared_ptr<const Json> object = nodes_.cache().Get({"", node});
  if (object == nullptr) return std::nullopt;
  const Json* const labels = FindPath(*object, {"metadata", "labels"});
  return labels == nullptr ? "" : NodeKindOf(*labels);
}

}  // namespace lambdadnn
