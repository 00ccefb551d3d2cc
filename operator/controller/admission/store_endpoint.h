// SPDX-License-Identifier: Apache-2.0
// Which addresses a job may name as the endpoint of its store, and which it never may: the operator
// asks it from inside the cluster, and what it answers stands in the job's status. Pure: names are
// not resolved, so a name that leads to such an address passes here unless there is a list of
// stores and the name is not on it.
#pragma once

#include <optional>
#include <string>

#include "common/base/endpoint.h"
#include "common/base/status.h"
#include "operator/resources/store_endpoints.h"

namespace lambdadnn {

struct EndpointRules {
  // Of functions that are pods, "localhost" is the operator's own pod.
  bool refuse_loopback = false;
  // The API server as this process reaches it; absent = it is not known.
  std::optional<Endpoint> api_server = {};
  // Those that jobs may name beside the operator's own; absent = every other.
  std::optional<StoreEndpoints> listed = {};
};

// kPermissionDenied says what the endpoint ("https://host[:port]"; empty = AWS's) is and what to
// do. Refused are link-local addresses (where clouds keep their metadata), the unspecified address,
// the API server, loopback as the rules say, what is no endpoint, and what is not listed where
// there is a list; being listed admits none of the former. Numbers are read as getaddrinfo does
// ("0x7f.1", "2130706433").
Status CheckEndpoint(const EndpointRules& rules, const std::string& endpoint);

}  // namespace lambdadnn
