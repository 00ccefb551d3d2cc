// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/pod_endpoint.h"

#include "common/base/text.h"
#include "common/json/json_path.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {

namespace {
constexpr long long kMaxPort = 65535;
}  // namespace

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
  if (ip.empty()) return {};
  const std::string label = LabelText(pod, kTlsPortLabel);
  if (label.empty()) return {.host = ip, .port = kQueueProxyPort};
  // What makes no sense is no reason for plain text.
  const long long port = ParseInteger(label).value_or(0);
  const bool is_port = port >= 1 && port <= kMaxPort;
  return {
      .scheme = "https", .host = ip, .port = is_port ? static_cast<int>(port) : kFunctionTlsPort};
}

}  // namespace lambdadnn
