// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/store_endpoint.h"

#include <optional>
#include <string>

#include "operator/resources/ip_block.h"

namespace lambdadnn {
namespace {

enum class AddressKind { kOther, kLinkLocal, kUnspecified, kLoopback };

AddressKind KindOf(const std::string& host) {
  struct Range {
    const char* cidr;
    AddressKind kind;
  };
  static constexpr Range kRanges[] = {
      {"169.254.0.0/16", AddressKind::kLinkLocal}, {"fe80::/10", AddressKind::kLinkLocal},
      {"0.0.0.0/8", AddressKind::kUnspecified},    {"::/128", AddressKind::kUnspecified},
      {"127.0.0.0/8", AddressKind::kLoopback},     {"::1/128", AddressKind::kLoopback}};
  if (const auto address = AddressOfHost(host); address.has_value()) {
    const IpBlock reached = BehindNat64(*address);
    for (const Range& range : kRanges) {
      if (ParseIpBlock(range.cidr)->Covers(reached)) return range.kind;
    }
    return AddressKind::kOther;
  }
  const bool local = host == "localhost" || host.ends_with(".localhost") ||
                     host == "localhost.localdomain" || host == "ip6-localhost";
  return local ? AddressKind::kLoopback : AddressKind::kOther;
}

bool IsApiServer(const EndpointRules& rules, const Endpoint& endpoint, const std::string& host) {
  const std::optional<Endpoint>& known = rules.api_server;
  if (known.has_value() && IsSameServer(*known, endpoint)) return true;
  return host == "kubernetes" || host == "kubernetes.default" ||
         host.starts_with("kubernetes.default.svc");
}

bool IsMetadataName(const std::string& host) {
  return host == "metadata" || host == "metadata.google.internal" || host == "instance-data";
}

Status CheckListed(const StoreEndpoints& listed, const Endpoint& endpoint) {
  if (listed.Allows(endpoint)) return OkStatus();
  const std::string what =
      listed.allowed.empty()
          ? " is not the operator's own object store, and jobs may use no other here; "
          : " is not among the object stores that jobs may use here (" + listed.Text() + "); ";
  return PermissionDeniedError(
      "spec.objectStore.endpoint: " + endpoint.Text() + what +
      "leave it away for the operator's own, or ask the administrator to add it to "
      "objectStore.allowedEndpoints of the chart (--store-endpoints of the operator)");
}

}  // namespace

Status CheckEndpoint(const EndpointRules& rules, const std::string& endpoint) {
  if (endpoint.empty()) return OkStatus();
  const Result<Endpoint> read = ParseEndpoint(endpoint);
  // Another program might read it as an address that is refused here.
  if (!read.ok()) {
    return PermissionDeniedError("spec.objectStore.endpoint: " + read.status().message() +
                                 "; name the Service or address of your store");
  }
  const std::string host = PlainHost(*read);
  const AddressKind kind = KindOf(host);
  const char* what = nullptr;
  if (kind == AddressKind::kLinkLocal || IsMetadataName(host)) {
    what = "a link-local address, where clouds keep their metadata";
  } else if (kind == AddressKind::kUnspecified) {
    what = "an unspecified address";
  } else if (kind == AddressKind::kLoopback && rules.refuse_loopback) {
    what = "the operator's own pod";
  } else if (IsApiServer(rules, *read, host)) {
    what = "the cluster's API server";
  }
  if (what == nullptr) {
    return rules.listed.has_value() ? CheckListed(*rules.listed, *read) : OkStatus();
  }
  return PermissionDeniedError("spec.objectStore.endpoint: " + endpoint + " is " + what +
                               ", no object store; name the Service or address of your store");
}

}  // namespace lambdadnn
