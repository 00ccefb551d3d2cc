// SPDX-License-Identifier: Apache-2.0
// An IP address or a range of them, as ipBlocks of NetworkPolicies have it. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/endpoint.h"

namespace lambdadnn {

struct IpBlock {
  bool is_ipv6 = false;
  int prefix_bits = 0;  // 32 or 128: one address
  // In network order; of IPv4 the first four.
  std::array<uint8_t, 16> bytes = {};

  bool Covers(const IpBlock& address) const;
  // "10.0.0.7/32", with the bits after the prefix zero.
  std::string Cidr() const;
};

// The host without the scope of an address and the last dot of a name, by which one host has
// several texts.
std::string PlainHost(const Endpoint& endpoint);

// One host, by either of its texts, and one port.
bool IsSameServer(const Endpoint& a, const Endpoint& b);

// Numbers are read as getaddrinfo does ("0x7f.1", "2130706433"); an IPv6 address that stands for
// one of IPv4 ("::ffff:10.0.0.7") is that one. Nothing: a name.
std::optional<IpBlock> AddressOfHost(const std::string& host);

// The IPv4 address that one of NAT64 (64:ff9b::/96, RFC 6052) leads to; any other is itself. Its
// packets go to the IPv6 address, which is what NetworkPolicies must name.
IpBlock BehindNat64(const IpBlock& address);

// "10.0.0.0/8", "10.0.0.7", "fd00::/8", in the usual notation alone.
std::optional<IpBlock> ParseIpBlock(const std::string& text);

}  // namespace lambdadnn
