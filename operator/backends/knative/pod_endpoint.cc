// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/pod_endpoint.h"

#include <optional>

#include "common/base/text.h"
#include "common/json/json_path.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {

namespace {
constexpr long long kMaxPort = 65535;

std::string PodIpOf(const Json& pod) {
  const Json* status = FindPath(pod, {"status"});
  return status == nullptr ? "" : TextField(*status, "podIP");
}

// Nothing where the label says none.
std::optional<int> PortOf(const std::string& label) {
  const long long port = ParseInteger(label).value_or(0);
  if (port < 1 || port > kMaxPort) return std::nullopt;
  return static_cast<int>(port);
}

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
  const std::string ip = PodIpOf(pod);
  if (ip.empty()) return {};
  const std::string label = LabelText(pod, kTlsPortLabel);
  if (label.empty()) return {.host = ip, .port = kQueueProxyPort};
  // What makes no sense is no reason for plain text.
  return {.scheme = "https", .host = ip, .port = PortOf(label).value_or(kFunctionTlsPort)};
}

std::string PeerAddressOf(const Json& pod) {
  const std::string ip = PodIpOf(pod);
  const std::optional<int> port = PortOf(LabelText(pod, kPeerPortLabel));
  if (ip.empty() || !port.has_value()) return "";
  return Endpoint{.host = ip, .port = *port}.Authority();
}

}  // namespace lambdadnn
