// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/pod_index.h"

#include <algorithm>

#include "common/json/json_path.h"
#include "operator/backends/kubernetes/pod_instances.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

// Pods that a platform makes have one; pods made by hand have none.
bool HasController(const Json& pod) {
  const Json* owners = FindPath(pod, {"metadata", "ownerReferences"});
  return owners != nullptr && owners->is_array() &&
         std::any_of(owners->begin(), owners->end(),
                     [](const Json& owner) { return IsTrueAt(owner, {"controller"}); });
}

}  // namespace

PodIndex::PodIndex(KubeClient& kube, Runtime& runtime, Options options,
                   std::function<void(const ObjectName&)> on_gone)
    : runtime_(runtime),
      options_(std::move(options)),
      on_gone_(std::move(on_gone)),
      pods_(kube, runtime,
            InformerOptions{.type = PodType(),
                            .namespaces = options_.namespaces,
                            .label_selector = kJobUidLabel}) {}

void PodIndex::Start() {
  pods_.SetHandler([this](const ObjectName& pod) { Index(pod); });
  pods_.Start();
}

void PodIndex::Index(const ObjectName& pod) {
  const std::shared_ptr<const Json> object = pods_.cache().Get(pod);
  Place(pod, object.get());
  if (object == nullptr && on_gone_ != nullptr) on_gone_(pod);
}

void PodIndex::Place(const ObjectName& pod, const Json* object) {
  const std::string job = object == nullptr ? "" : LabelText(*object, kJobUidLabel);
  const Instant now = runtime_.clock.Now();
  const std::lock_guard lock(mutex_);
  if (object != nullptr && IsBeingDeleted(*object)) {
    deleted_since_.try_emplace(pod, now);
  } else {
    deleted_since_.erase(pod);
  }
  const auto known = job_of_pod_.find(pod);
  if (known != job_of_pod_.end()) {
    if (known->second == job) return;
    const auto of_job = pods_of_job_.find(known->second);
    of_job->second.erase(pod);
    if (of_job->second.empty()) pods_of_job_.erase(of_job);
    job_of_pod_.erase(known);
  }
  if (object == nullptr) return;
  pods_of_job_[job].insert(pod);
  job_of_pod_[pod] = job;
}

Status PodIndex::CheckSynced() const {
  if (pods_.synced()) return OkStatus();
  const std::string why = pods_.Problem().message();
  return UnavailableError("the pods of functions are not listed yet" +
                          (why.empty() ? "" : ": " + why));
}

PodIndex::Pods PodIndex::PodsOf(const JobIdentity& job, const std::string& group) const {
  std::set<ObjectName> names;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pods_of_job_.find(job.uid);
    if (found != pods_of_job_.end()) names = found->second;
  }
  Pods pods;
  for (const ObjectName& name : names) {
    // Users of another namespace may give their pods any label.
    const std::string& place = options_.place.empty() ? job.namespace_name : options_.place;
    if (name.namespace_name != place) continue;
    std::shared_ptr<const Json> pod = pods_.cache().Get(name);
    if (pod == nullptr || !HasController(*pod)) continue;
    if (group.empty() || LabelText(*pod, kGroupLabel) == group) pods.push_back(std::move(pod));
  }
  return pods;
}

std::shared_ptr<const Json> PodIndex::PodOf(const JobIdentity& job, const std::string& uid) const {
  for (const std::shared_ptr<const Json>& pod : PodsOf(job, "")) {
    if (UidOf(*pod) == PodUidOf(uid)) return pod;
  }
  return nullptr;
}

bool PodIndex::Knows(const ObjectName& pod) const {
  const std::lock_guard lock(mutex_);
  return job_of_pod_.contains(pod);
}

bool PodIndex::IsOverdue(const Json& pod) const {
  const std::lock_guard lock(mutex_);
  const auto seen = deleted_since_.find(NameOf(pod));
  if (seen == deleted_since_.end() || !IsBeingDeleted(pod)) return false;
  const Duration limit =
      FromSeconds(static_cast<double>(DeletionGraceSeconds(pod)) + options_.lost_node_seconds);
  return runtime_.clock.Now() - seen->second > limit;
}

}  // namespace lambdadnn
