// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/cluster_reader.h"

#include <algorithm>

#include "operator/kube/list_all.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

// What is kept of namespaces is forgotten beyond this many.
constexpr size_t kMostNamespaces = 1000;
// The same of nodes.
constexpr size_t kMostNodes = 10'000;
// What is watched is summed up at most this often.
constexpr double kSumSeconds = 1;

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

}  // namespace

ClusterReader::ClusterReader(KubeClient& kube, Runtime& runtime, Options options)
    : kube_(kube),
      runtime_(runtime),
      options_(std::move(options)),
      watched_(options_.watch
                   ? std::make_unique<WatchedNodeUsage>(kube, runtime, options_.namespaces)
                   : nullptr) {}

template <typename Kind>
bool ClusterReader::IsFresh(const std::optional<std::pair<Kind, Instant>>& kept,
                            double seconds) const {
  return kept.has_value() && runtime_.clock.Now() - kept->second < FromSeconds(seconds);
}

Result<std::shared_ptr<const NodeUsage>> ClusterReader::UsageNow() {
  {
    const std::lock_guard lock(mutex_);
    const double seconds = watched_ != nullptr ? std::min(kSumSeconds, options_.fresh_seconds)
                                               : options_.fresh_seconds;
    if (IsFresh(usage_, seconds)) return usage_->first;
  }
  // The lock is not held while the API server is asked.
  LDNN_ASSIGN_OR_RETURN(NodeUsage found, watched_ != nullptr
                                             ? watched_->Read()
                                             : ListNodeUsage(kube_, options_.namespaces));
  auto usage = std::make_shared<const NodeUsage>(std::move(found));
  const std::lock_guard lock(mutex_);
  usage_.emplace(usage, runtime_.clock.Now());
  return usage;
}

Result<ClusterLimits> ClusterReader::PlatformNow() {
  if (options_.read_platform == nullptr) return ClusterLimits{};
  {
    const std::lock_guard lock(mutex_);
    if (IsFresh(platform_, options_.fresh_seconds)) return platform_->first;
  }
  LDNN_ASSIGN_OR_RETURN(ClusterLimits found, options_.read_platform(kube_));
  const std::lock_guard lock(mutex_);
  platform_.emplace(found, runtime_.clock.Now());
  return found;
}

Status ClusterReader::ReadNamespace(const std::string& namespace_name, const NodeUsage& usage,
                                    ClusterLimits* limits) {
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
  if (usage.own.has_value()) {
    const auto found = usage.own->find(namespace_name);
    if (found != usage.own->end()) own = found->second;
  } else {
    LDNN_RETURN_IF_ERROR(list(PodType(), "the namespace's functions", [&](const Json& pod) {
      if (!LabelText(pod, kJobUidLabel).empty()) own += ReadPodResources(pod, &limits->unknown);
    }));
  }
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
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<const NodeUsage> usage, UsageNow());
  const NodeUsage& nodes = *usage;
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
    LDNN_RETURN_IF_ERROR(ReadNamespace(namespace_name, nodes, &*limits));
    const std::lock_guard lock(mutex_);
    if (namespaces_.size() >= kMostNamespaces) namespaces_.clear();
    namespaces_[namespace_name] = {*limits, runtime_.clock.Now()};
  }
  limits->max_timeout_seconds = platform.max_timeout_seconds;
  limits->max_scale = platform.max_scale;
  limits->request_timeout_seconds = platform.request_timeout_seconds;
  limits->request_timeout_source = platform.request_timeout_source;
  limits->disabled_features = platform.disabled_features;
  for (const auto* unknown : {&platform.unknown, &nodes.unknown}) {
    limits->unknown.insert(limits->unknown.end(), unknown->begin(), unknown->end());
  }
  if (!nodes.nodes.has_value()) return *limits;
  limits->nodes.emplace();
  const PodTemplate workers = PodsOfWorkers(pods);
  for (const NodeCapacity& node : *nodes.nodes) {
    FreeNode free{node.allocatable, Admits(node, workers), Admits(node, pods)};
    if (!free.takes_workers && !free.takes_servers) continue;
    const auto others = nodes.others.find(node.name);
    if (others != nodes.others.end()) {
      static_cast<PodResources&>(free) = node.allocatable - others->second;
    }
    limits->nodes->push_back(free);
  }
  return *limits;
}

Result<FunctionCapacity> ClusterReader::Capacity() {
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<const NodeUsage> usage, UsageNow());
  const NodeUsage& nodes = *usage;
  FunctionCapacity capacity;
  if (!nodes.nodes.has_value()) return capacity;
  PodResources free;
  for (const NodeCapacity& node : *nodes.nodes) {
    if (!AdmitsSome(node)) continue;
    const auto others = nodes.others.find(node.name);
    free += others == nodes.others.end() ? node.allocatable : node.allocatable - others->second;
  }
  // Where other pods hold everything; 0 would be no limit.
  const auto limit = [](double amount) { return std::max<int64_t>(1, Whole(amount)); };
  capacity.memory_mib = limit(free.memory_mib);
  capacity.milli_cpu = limit(free.milli_cpu);
  capacity.functions = limit(free.pods);
  capacity.gpus = Whole(free.gpus);
  return capacity;
}

std::string ClusterReader::NodeKind(const std::string& node) {
  if (watched_ == nullptr || node.empty()) return "";
  const Instant now = runtime_.clock.Now();
  const std::lock_guard lock(mutex_);
  const auto kept = node_kinds_.find(node);
  // Objects are parsed at each look, and every pass of every job asks.
  if (kept != node_kinds_.end() &&
      now - kept->second.second < FromSeconds(options_.fresh_seconds)) {
    return kept->second.first;
  }
  if (node_kinds_.size() >= kMostNodes) node_kinds_.clear();
  std::optional<std::string> kind = watched_->NodeKind(node);
  if (!kind.has_value()) return "";
  node_kinds_[node] = {*kind, now};
  return *std::move(kind);
}

}  // namespace lambdadnn
