// SPDX-License-Identifier: Apache-2.0
// The address of an HTTP server: scheme, host, port and path prefix, and the one parser of such
// URLs. Pure: names are not resolved.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace lambdadnn {

struct Endpoint {
  std::string scheme = "";     // "http" or "https"; empty = not given
  std::string user_info = "";  // the part before '@'; a secret, which Text() omits
  std::string host = "";       // in lower case, an IPv6 address without its brackets
  int port = 0;                // 0 = not given
  std::string path = "";       // "/prefix", without a slash at its end; empty = none

  bool IsTls() const;
  // The given port, else the scheme's default: 80 of http, 443 of any other.
  int PortOrUsual() const;
  // "host", "host:port", "[::1]:port": the port as it was given.
  std::string Authority() const;
  // The same without the scheme's default port, as in the Host field: gateways may route by the
  // bare name alone.
  std::string HostField() const;
  // "https://host:port/prefix", without the parts that were not given.
  std::string Text() const;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// "[http[s]://][user@]host[:port][/prefix]". kInvalidArgument says what is wrong: another scheme,
// no host, a port that is none, an IPv6 address without brackets, a query, a fragment, a space.
Result<Endpoint> ParseEndpoint(std::string_view text);

// "host:port", "[::1]:port", ":port" or "host" taken apart at the last colon outside brackets,
// which are taken off. Host and port are not validated. nullopt: a bracket that is not closed.
struct HostAndPort {
  std::string host;
  std::optional<std::string> port;
  bool bracketed = false;
  friend bool operator==(const HostAndPort&, const HostAndPort&) = default;
};
std::optional<HostAndPort> SplitHostAndPort(std::string_view text);

}  // namespace lambdadnn
