// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/pod_endpoint.h"

#include "operator/backends/kubernetes/pod_address.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/function_groups.h"
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
  const std::string ip = PodIpOf(pod);
  if (ip.empty()) return {};
  const std::string label = LabelText(pod, kTlsPortLabel);
  if (label.empty()) return {.host = ip, .port = kQueueProxyPort};
  // What makes no sense is no reason for plain text.
  return {.scheme = "https", .host = ip, .port = PortOf(label).value_or(kFunctionTlsPort)};
}

}  // namespace lambdadnn
