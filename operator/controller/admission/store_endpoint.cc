// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/store_endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

namespace lambdadnn {
namespace {

struct Authority {
  std::string host;  // in lower case, without brackets, scope of an address and last dot
  std::string port;
};

Authority AuthorityOf(const std::string& endpoint) {
  std::string text = endpoint;
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  Authority authority;
  authority.port = text.starts_with("http://") ? "80" : "443";
  if (const size_t scheme = text.find("://"); scheme != std::string::npos) {
    text = text.substr(scheme + 3);
  }
  text = text.substr(0, text.find_first_of("/?#\\"));
  if (const size_t user = text.rfind('@'); user != std::string::npos) text = text.substr(user + 1);
  const size_t bracket = text.starts_with('[') ? text.find(']') : std::string::npos;
  const size_t colon = text.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos) authority.port = text.substr(colon + 1);
  authority.host =
      bracket == std::string::npos ? text.substr(0, colon) : text.substr(1, bracket - 1);
  authority.host = authority.host.substr(0, authority.host.find('%'));
  while (authority.host.ends_with('.')) authority.host.pop_back();
  return authority;
}

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

bool IsApiServer(const EndpointRules& rules, const Authority& authority) {
  const Authority known = AuthorityOf(rules.api_server);
  if (known.host == authority.host && known.port == authority.port) return true;
  const std::string& host = authority.host;
  return host == "kubernetes" || host == "kubernetes.default" ||
         host.starts_with("kubernetes.default.svc");
}

bool IsMetadataName(const std::string& host) {
  return host == "metadata" || host == "metadata.google.internal" || host == "instance-data";
}

}  // namespace

Status CheckEndpoint(const EndpointRules& rules, const std::string& endpoint) {
  const Authority authority = AuthorityOf(endpoint);
  const std::string& host = authority.host;
  const AddressKind kind = KindOf(host);
  const char* what = nullptr;
  if (kind == AddressKind::kLinkLocal || IsMetadataName(host)) {
    what = "a link-local address, where clouds keep their metadata";
  } else if (kind == AddressKind::kUnspecified) {
    what = "an unspecified address";
  } else if (kind == AddressKind::kLoopback && rules.refuse_loopback) {
    what = "the operator's own pod";
  } else if (IsApiServer(rules, authority)) {
    what = "the cluster's API server";
  }
  if (what == nullptr) return OkStatus();
  return PermissionDeniedError("spec.objectStore.endpoint: " + endpoint + " is " + what +
                               ", no object store; name the Service or address of your store");
}

}  // namespace lambdadnn
