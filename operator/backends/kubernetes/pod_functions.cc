// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/pod_functions.h"

#include <iterator>

#include "operator/backends/kubernetes/pod_instances.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {

std::vector<FunctionInstance> PodFunctions::List(
    const JobIdentity& job, const std::function<void(const Json& pod, FunctionInstance*)>& adjust) {
  std::vector<FunctionInstance> instances;
  InstanceLogs::Look look{.begin = runtime_.clock.Now()};
  const WallTime wall = runtime_.clock.Wall();
  for (const std::shared_ptr<const Json>& pod : pods_.PodsOf(job, "")) {
    std::vector<FunctionInstance> of_pod = InstancesOf(*pod, options_.endpoint_of(*pod));
    TellAges(*pod, wall, &of_pod);
    for (FunctionInstance& instance : of_pod) {
      instance.host.node_kind = nodes_.NodeKind(instance.host.node);
    }
    logs_.AddEnds(*pod, &look, &of_pod);
    if (!of_pod.empty() && pods_.IsOverdue(*pod)) {
      FunctionInstance& lost = of_pod.back();
      lost.phase = FunctionPhase::kGone;
      lost.reason = "NodeLost";
      lost.message = "the pod was deleted, and its node has not confirmed its end";
      lost.end = FunctionEnd::kByPlatform;
      lost.age_seconds = 0;  // unknown when it ended
    }
    if (!of_pod.empty() && adjust != nullptr) adjust(*pod, &of_pod.back());
    std::move(of_pod.begin(), of_pod.end(), std::back_inserter(instances));
  }
  return instances;
}

Result<std::string> PodFunctions::Logs(const JobIdentity& job, const std::string& uid,
                                       int last_lines) {
  LDNN_RETURN_IF_ERROR(pods_.CheckSynced());
  const std::shared_ptr<const Json> pod = pods_.PodOf(job, uid);
  if (pod == nullptr) return NotFoundError("function " + uid + " has no pod any more");
  return logs_.Read(NameOf(*pod), uid, last_lines);
}

Status PodFunctions::DeleteInstance(const JobIdentity& job, const std::string& uid) {
  LDNN_RETURN_IF_ERROR(pods_.CheckSynced());
  const std::shared_ptr<const Json> pod = pods_.PodOf(job, uid);
  if (pod == nullptr || IsBeingDeleted(*pod)) return OkStatus();
  // The container has been restarted: its next run is another instance, which must not be deleted.
  if (InstancesOf(*pod).back().uid != uid) return OkStatus();
  return DeletePod(*pod);
}

Status PodFunctions::DeletePod(const Json& pod) {
  const Status deleted =
      kube_.DeleteWithin(PodType(), NameOf(pod), UidOf(pod), options_.grace_seconds);
  return deleted.code() == StatusCode::kNotFound ? OkStatus() : deleted;
}

Status PodFunctions::DeleteCrashLooping(const JobIdentity& job, const std::string& group) {
  for (const std::shared_ptr<const Json>& pod : pods_.PodsOf(job, group)) {
    if (IsCrashLooping(*pod) && !IsBeingDeleted(*pod)) LDNN_RETURN_IF_ERROR(DeletePod(*pod));
  }
  return OkStatus();
}

}  // namespace lambdadnn
