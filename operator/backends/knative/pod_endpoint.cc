// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/pod_endpoint.h"

#include "common/json/json_path.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {

bool IsReachedByService(const Json& pod) {
  return !LabelText(pod, kMemberLabel).empty() && !LabelText(pod, kServiceLabel).empty();
}

// A Service's name is left to the cluster's domain and its servers of names to complete.
Endpoint KnativeEndpointOf(const Json& pod) {
  if (IsReachedByService(pod)) {
    const std::string name = LabelText(pod, kServiceLabel) + "." + NameOf(pod).namespace_name;
    return {.host = name + ".svc", .port = kServicePort};
  }
  const Json* status = FindPath(pod, {"status"});
  const std::string ip = status == nullptr ? "" : TextField(*status, "podIP");
  return ip.empty() ? Endpoint{} : Endpoint{.host = ip, .port = kQueueProxyPort};
}

}  // namespace lambdadnn
