// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/store_endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "operator/resources/ip_block.h"

namespace lambdadnn {
namespace {

// In the order of bytes of this machine; of an IPv6 address that stands for one as well.
std::optional<uint32_t> Ipv4Of(const std::string& host) {
  in_addr four{};
  if (::inet_aton(host.c_str(), &four) == 1) return ntohl(four.s_addr);
  in6_addr six{};
  if (::inet_pton(AF_INET6, host.c_str(), &six) != 1) return std::nullopt;
  static constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  static constexpr std::array<uint8_t, 12> kNat64 = {0, 0x64, 0xff, 0x9b};
  const bool stands_for_one = std::memcmp(six.s6_addr, kMapped.data(), kMapped.size()) == 0 ||
                              std::memcmp(six.s6_addr, kNat64.data(), kNat64.size()) == 0;
  if (!stands_for_one) return std::nullopt;
  uint32_t four_bytes = 0;
  std::memcpy(&four_bytes, six.s6_addr + 12, sizeof four_bytes);
  return ntohl(four_bytes);
}

std::optional<in6_addr> Ipv6Of(const std::string& host) {
  in6_addr six{};
  if (::inet_pton(AF_INET6, host.c_str(), &six) != 1) return std::nullopt;
  return six;
}

enum class AddressKind { kOther, kLinkLocal, kUnspecified, kLoopback };

AddressKind KindOf(const std::string& host) {
  if (const auto four = Ipv4Of(host); four.has_value()) {
    if (*four >> 16 == 0xA9FE) return AddressKind::kLinkLocal;
    if (*four >> 24 == 0) return AddressKind::kUnspecified;
    return *four >> 24 == 127 ? AddressKind::kLoopback : AddressKind::kOther;
  }
  if (const auto six = Ipv6Of(host); six.has_value()) {
    if (IN6_IS_ADDR_LINKLOCAL(&*six)) return AddressKind::kLinkLocal;
    if (IN6_IS_ADDR_UNSPECIFIED(&*six)) return AddressKind::kUnspecified;
    return IN6_IS_ADDR_LOOPBACK(&*six) ? AddressKind::kLoopback : AddressKind::kOther;
  }
  const bool local = host == "localhost" || host.ends_with(".localhost") ||
                     host == "localhost.localdomain" || host == "ip6-localhost";
  return local ? AddressKind::kLoopback : AddressKind::kOther;
}

bool IsApiServer(const EndpointRules& rules, const Endpoint& endpoint, const std::string& host) {
  const std::optional<Endpoint>& known = rules.api_server;
  if (known.has_value() && PlainHost(*known) == host &&
      known->PortOrUsual() == endpoint.PortOrUsual()) {
    return true;
  }
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
  // What this cannot read another program might, as an address that is refused.
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
