// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/cluster_reader.h"

#include <algorithm>

#include "common/json/json_path.h"
#include "operator/kube/list_all.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

// What is kept of namespaces is forgotten beyond this many.
constexpr size_t kMostNamespaces = 1000;

const ResourceType& QuotaType() {
  static const ResourceType type = {"", "v1", "resourcequotas", "ResourceQuota"};
  return type;
}

const ResourceType& LimitRangeType() {
  static const ResourceType type = {"", "v1", "limitranges", "LimitRange"};
  return type;
}

// 0 would be no limit.
int64_t Whole(double amount) {
  constexpr double kMost = 1e15;
  return static_cast<int64_t>(std::clamp(amount, 1.0, kMost));
}

std::string NodeOf(const Json& pod) {
  const Json* name = FindPath(pod, {"spec", "nodeName"});
  return name != nullptr && name->is_string() ? name->get<std::string>() : "";
}

}  // namespace

ClusterReader::ClusterReader(KubeClient& kube, Runtime& runtime, Options options)
    : kube_(kube), runtime_(runtime), options_(std::move(options)) {}

bool ClusterReader::MayNotRead(const Status& status) {
  return status.code() == StatusCode::kPermissionDenied || status.code() == StatusCode::kNotFound;
}

template <typename Kind>
bool ClusterReader::IsFresh(const std::optional<std::pair<Kind, Instant>>& kept) const {
  return kept.has_value() &&
         runtime_.clock.Now() - kept->second < FromSeconds(options_.fresh_seconds);
}

Result<ClusterReader::Nodes> ClusterReader::ReadNodes() {
  Nodes found;
  std::vector<NodeCapacity> nodes;
  bool any = false;
  const Status listed = ForEachListed(kube_, NodeType(), "", "", [&](const Json& node) {
    any = true;
    if (auto capacity = ReadNode(node, &found.unknown)) nodes.push_back(*std::move(capacity));
  });
  if (MayNotRead(listed)) {
    found.unknown.push_back("the nodes' capacity: " + listed.message());
    return found;
  }
  LDNN_RETURN_IF_ERROR(listed);
  // Of a server without nodes nothing is known.
  if (!any) return found;
  found.nodes = std::move(nodes);
  const std::vector<std::string>& spaces = options_.namespaces;
  const Status added = ForEachListed(kube_, PodType(), "", "", [&](const Json& pod) {
    const std::string node = NodeOf(pod);
    if (node.empty()) return;
    const bool own_place = spaces.empty() || std::find(spaces.begin(), spaces.end(),
                                                       NameOf(pod).namespace_name) != spaces.end();
    if (own_place && !LabelText(pod, kJobUidLabel).empty()) return;
    found.others[node] += ReadPodResources(pod, &found.unknown);
  });
  if (MayNotRead(added)) {
    found.unknown.push_back("the requests of other pods on the nodes: " + added.message());
    return found;
  }
  LDNN_RETURN_IF_ERROR(added);
  return found;
}

Result<ClusterReader::Nodes> ClusterReader::NodesNow() {
  {
    const std::lock_guard lock(mutex_);
    if (IsFresh(nodes_)) return nodes_->first;
  }
  // The lock is not held while the API server is asked.
  LDNN_ASSIGN_OR_RETURN(Nodes found, ReadNodes());
  const std::lock_guard lock(mutex_);
  nodes_.emplace(found, runtime_.clock.Now());
  return found;
}

Result<ClusterLimits> ClusterReader::PlatformNow() {
  if (options_.read_platform == nullptr) return ClusterLimits{};
  {
    const std::lock_guard lock(mutex_);
    if (IsFresh(platform_)) return platform_->first;
  }
  LDNN_ASSIGN_OR_RETURN(ClusterLimits found, options_.read_platform(kube_));
  const std::lock_guard lock(mutex_);
  platform_.emplace(found, runtime_.clock.Now());
  return found;
}

Status ClusterReader::ReadNamespace(const std::string& namespace_name, ClusterLimits* limits) {
  const auto list = [&](const ResourceType& type, const char* what,
                        const std::function<void(const Json&)>& use) -> Status {
    const Status listed = ForEachListed(kube_, type, namespace_name, "", use);
    if (!MayNotRead(listed)) return listed;
    limits->unknown.push_back(std::string(what) + ": " + listed.message());
    return OkStatus();
  };
  LDNN_RETURN_IF_ERROR(list(LimitRangeType(), "the namespace's LimitRanges",
                            [&](const Json& limit_range) { ReadLimitRange(limit_range, limits); }));
  std::vector<Json> quotas;
  LDNN_RETURN_IF_ERROR(list(QuotaType(), "the namespace's ResourceQuotas",
                            [&](const Json& quota) { quotas.push_back(quota); }));
  if (quotas.empty()) return OkStatus();
  PodResources own;
  LDNN_RETURN_IF_ERROR(list(PodType(), "the namespace's functions", [&](const Json& pod) {
    if (!LabelText(pod, kJobUidLabel).empty()) own += ReadPodResources(pod, &limits->unknown);
  }));
  for (const Json& quota : quotas) ReadQuota(quota, own, limits);
  if (limits->quota.limits_cpu) {
    limits->sidecar.milli_cpu =
        std::max<double>(limits->sidecar.milli_cpu, options_.sidecar_milli_cpu_limit);
  }
  return OkStatus();
}

Result<ClusterLimits> ClusterReader::Limits(const std::string& namespace_name,
                                            const PodTemplate& pods) {
  LDNN_ASSIGN_OR_RETURN(const ClusterLimits platform, PlatformNow());
  LDNN_ASSIGN_OR_RETURN(const Nodes nodes, NodesNow());
  std::optional<ClusterLimits> limits;
  {
    const std::lock_guard lock(mutex_);
    const auto kept = namespaces_.find(namespace_name);
    if (kept != namespaces_.end() &&
        runtime_.clock.Now() - kept->second.at < FromSeconds(options_.fresh_seconds)) {
      limits = kept->second.limits;
    }
  }
  if (!limits.has_value()) {
    limits = platform;
    limits->sidecar = options_.sidecar;
    limits->unknown.clear();
    LDNN_RETURN_IF_ERROR(ReadNamespace(namespace_name, &*limits));
    const std::lock_guard lock(mutex_);
    if (namespaces_.size() >= kMostNamespaces) namespaces_.clear();
    namespaces_[namespace_name] = {*limits, runtime_.clock.Now()};
  }
  limits->max_timeout_seconds = platform.max_timeout_seconds;
  limits->max_scale = platform.max_scale;
  limits->disabled_features = platform.disabled_features;
  for (const auto* unknown : {&platform.unknown, &nodes.unknown}) {
    limits->unknown.insert(limits->unknown.end(), unknown->begin(), unknown->end());
  }
  if (!nodes.nodes.has_value()) return *limits;
  limits->nodes.emplace();
  for (const NodeCapacity& node : *nodes.nodes) {
    if (!Admits(node, pods)) continue;
    const auto others = nodes.others.find(node.name);
    limits->nodes->push_back(others == nodes.others.end() ? node.allocatable
                                                          : node.allocatable - others->second);
  }
  return *limits;
}

Result<FunctionCapacity> ClusterReader::Capacity() {
  LDNN_ASSIGN_OR_RETURN(const Nodes nodes, NodesNow());
  FunctionCapacity capacity;
  if (!nodes.nodes.has_value()) return capacity;
  PodResources free;
  for (const NodeCapacity& node : *nodes.nodes) {
    if (!AdmitsSome(node)) continue;
    const auto others = nodes.others.find(node.name);
    free += others == nodes.others.end() ? node.allocatable : node.allocatable - others->second;
  }
  capacity.memory_mib = Whole(free.memory_mib);
  return capacity;
}

}  // namespace lambdadnn
