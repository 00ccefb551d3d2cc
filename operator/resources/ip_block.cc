// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/ip_block.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr int kIpv4Bits = 32;
constexpr int kIpv6Bits = 128;
constexpr size_t kMappedBytes = 12;
constexpr std::array<uint8_t, kMappedBytes> kNat64 = {0, 0x64, 0xff, 0x9b};

IpBlock OfIpv4(const in_addr& address) {
  IpBlock block{.prefix_bits = kIpv4Bits};
  std::memcpy(block.bytes.data(), &address.s_addr, sizeof address.s_addr);
  return block;
}

IpBlock OfIpv6(const in6_addr& address) {
  IpBlock block{.is_ipv6 = true, .prefix_bits = kIpv6Bits};
  std::copy(std::begin(address.s6_addr), std::end(address.s6_addr), block.bytes.begin());
  return block;
}

// What of the byte at `index` belongs to the prefix.
uint8_t MaskOf(int prefix_bits, size_t index) {
  const int bits = std::clamp(prefix_bits - 8 * static_cast<int>(index), 0, 8);
  return static_cast<uint8_t>(0xff << (8 - bits));
}

}  // namespace

bool IpBlock::Covers(const IpBlock& address) const {
  if (is_ipv6 != address.is_ipv6 || prefix_bits > address.prefix_bits) return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (((bytes[i] ^ address.bytes[i]) & MaskOf(prefix_bits, i)) != 0) return false;
  }
  return true;
}

std::string IpBlock::Cidr() const {
  std::array<uint8_t, 16> kept = bytes;
  for (size_t i = 0; i < kept.size(); ++i) {
    kept[i] = static_cast<uint8_t>(kept[i] & MaskOf(prefix_bits, i));
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, kept.data(), text.data(), text.size());
  return std::string(text.data()) + "/" + std::to_string(prefix_bits);
}

std::string PlainHost(const Endpoint& endpoint) {
  std::string host = endpoint.host.substr(0, endpoint.host.find('%'));
  while (host.ends_with('.')) host.pop_back();
  return host;
}

bool IsSameServer(const Endpoint& a, const Endpoint& b) {
  return PlainHost(a) == PlainHost(b) && a.PortOrUsual() == b.PortOrUsual();
}

std::optional<IpBlock> AddressOfHost(const std::string& host) {
  in_addr four{};
  if (::inet_aton(host.c_str(), &four) == 1) return OfIpv4(four);
  in6_addr six{};
  if (::inet_pton(AF_INET6, host.c_str(), &six) != 1) return std::nullopt;
  if (!IN6_IS_ADDR_V4MAPPED(&six)) return OfIpv6(six);
  std::memcpy(&four.s_addr, &six.s6_addr[kMappedBytes], sizeof four.s_addr);
  return OfIpv4(four);
}

IpBlock BehindNat64(const IpBlock& address) {
  const auto& bytes = address.bytes;
  if (!address.is_ipv6 || !std::equal(kNat64.begin(), kNat64.end(), bytes.begin())) return address;
  IpBlock four{.prefix_bits = kIpv4Bits};
  std::copy(bytes.begin() + kMappedBytes, bytes.end(), four.bytes.begin());
  return four;
}

std::optional<IpBlock> ParseIpBlock(const std::string& text) {
  const size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  in_addr four{};
  in6_addr six{};
  IpBlock block;
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) {
    block = OfIpv4(four);
  } else if (::inet_pton(AF_INET6, address.c_str(), &six) == 1) {
    block = OfIpv6(six);
  } else {
    return std::nullopt;
  }
  if (slash == std::string::npos) return block;
  const std::optional<long long> bits = ParseInteger(text.substr(slash + 1));
  if (!bits.has_value() || *bits < 0 || *bits > block.prefix_bits) return std::nullopt;
  block.prefix_bits = static_cast<int>(*bits);
  return block;
}

}  // namespace lambdadnn
