// SPDX-License-Identifier: Apache-2.0
// The administrator's list of object stores that jobs may name as their endpoint, with the
// NetworkPolicy peers of each: policies match addresses of pods and hosts, not names. Pure: names
// are not resolved.
//
// The operator's own store is always one of them. Several entries may be for one endpoint; their
// peers add up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/endpoint.h"
#include "common/json/json_reader.h"
#include "operator/resources/ip_block.h"

namespace lambdadnn {

struct AllowedEndpoint {
  // A name, "*.example.com" (names that end so), an address or a range of them, or "*" (every
  // host); in lower case.
  std::string host = "";
  int port = 0;                       // 0 = any
  Json peers = Json::array();         // NetworkPolicyPeers
  std::optional<IpBlock> block = {};  // of `host`, where it is an address or a range

  bool Matches(const Endpoint& endpoint) const;
};

struct StoreEndpoints {
  std::string own = "";            // URL of the operator's own store; empty = AWS's
  Json own_peers = Json::array();  // NetworkPolicyPeers
  std::vector<AllowedEndpoint> allowed = {};

  // Whether a job may name it; the operator's own, too.
  bool Allows(const Endpoint& endpoint) const;
  // Rules of egress for the pods of a job whose store is at this URL (empty = AWS's), at its port:
  // to the peers of its entries; without peers to its address where the URL has one. A name without
  // peers has no rule, nor has a store that is not listed; the operator's own, which the
  // administrator chose, is then reached at any address.
  Json Egress(const std::string& endpoint) const;
  // The entries for a message, "none" without any; of many the first.
  std::string Text() const;
};

// From a file with these fields, both optional (the operator's own URL is not in it), e.g.
//   peers: [{ipBlock: {cidr: 192.0.2.7/32}}]
//   allowedEndpoints: [{host: minio.team.svc, port: 9000, peers: [{namespaceSelector: {}}]}]
// kInvalidArgument names the invalid field.
Result<StoreEndpoints> StoreEndpointsFromJson(const Json& json);
Result<StoreEndpoints> ReadStoreEndpoints(const std::string& file);

}  // namespace lambdadnn
