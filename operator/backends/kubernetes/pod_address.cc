// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/pod_address.h"

#include "common/base/endpoint.h"
#include "common/base/text.h"
#include "common/json/json_path.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {

std::string PodIpOf(const Json& pod) {
  const Json* status = FindPath(pod, {"status"});
  return status == nullptr ? "" : TextField(*status, "podIP");
}

std::optional<int> PortOf(const std::string& label) {
  constexpr long long kMaxPort = 65535;
  const long long port = ParseInteger(label).value_or(0);
  if (port < 1 || port > kMaxPort) return std::nullopt;
  return static_cast<int>(port);
}

std::string PeerAddressOf(const Json& pod) {
  const std::string ip = PodIpOf(pod);
  const std::optional<int> port = PortOf(LabelText(pod, kPeerPortLabel));
  if (ip.empty() || !port.has_value()) return "";
  return Endpoint{.host = ip, .port = *port}.Authority();
}

}  // namespace lambdadnn
