// SPDX-License-Identifier: Apache-2.0
// Which addresses a job may never name as the endpoint of its store: the operator asks it from
// inside the cluster, and what it answers stands in the job's status. Pure: names are not resolved,
// so a name of somebody's own that leads to such an address passes here; a NetworkPolicy of the
// operator is what stops that.
#pragma once

#include <optional>
#include <string>

#include "common/base/endpoint.h"
#include "common/base/status.h"

namespace lambdadnn {

struct EndpointRules {
  // Of functions that are pods, "localhost" is the operator's own pod.
  bool refuse_loopback = false;
  // The API server as this process reaches it; absent = it is not known.
  std::optional<Endpoint> api_server = {};
};

// kPermissionDenied says what the endpoint ("https://host[:port]"; empty = AWS's) is and what to
// do. Refused are link-local addresses (where clouds keep their metadata), the unspecified address,
// the API server, loopback as the rules say, and what is no endpoint; numbers are read as
// getaddrinfo does ("0x7f.1", "2130706433").
Status CheckEndpoint(const EndpointRules& rules, const std::string& endpoint);

}  // namespace lambdadnn
