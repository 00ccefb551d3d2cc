// SPDX-License-Identifier: Apache-2.0
#include "common/base/endpoint.h"

#include <algorithm>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kPlainScheme = "http";
constexpr std::string_view kTlsScheme = "https";
constexpr int kHttpPort = 80;
constexpr int kHttpsPort = 443;
constexpr long long kMaxPort = 65535;
constexpr std::string_view kSchemeEnd = "://";

// Some programs read a backslash as a slash, and so another host than this would.
bool IsForbidden(char c) {
  return (c >= 0 && c <= ' ') || c == '\x7f' || c == '\\' || c == '"' || c == '<' || c == '>';
}

// For messages: without the part before '@'.
std::string Shown(std::string_view text) {
  const size_t scheme = text.find(kSchemeEnd);
  const size_t begin = scheme == std::string_view::npos ? 0 : scheme + kSchemeEnd.size();
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string(text);
  return std::string(text.substr(0, begin)) + std::string(text.substr(at + 1));
}

}  // namespace

bool Endpoint::IsTls() const { return scheme == kTlsScheme; }

int Endpoint::PortOrUsual() const {
  if (port != 0) return port;
  return scheme == kPlainScheme ? kHttpPort : kHttpsPort;
}

std::string Endpoint::Authority() const {
  const bool literal6 = host.find(':') != std::string::npos;
  std::string text = literal6 ? "[" + host + "]" : host;
  if (port != 0) text += ":" + std::to_string(port);
  return text;
}

std::string Endpoint::HostField() const {
  Endpoint named = *this;
  if (!scheme.empty() && port == Endpoint{.scheme = scheme}.PortOrUsual()) named.port = 0;
  return named.Authority();
}

std::string Endpoint::Text() const {
  return (scheme.empty() ? "" : scheme + std::string(kSchemeEnd)) + Authority() + path;
}

std::optional<HostAndPort> SplitHostAndPort(std::string_view text) {
  HostAndPort parts;
  size_t after = 0;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    parts.bracketed = true;
    parts.host = text.substr(1, end - 1);
    after = end + 1;
    if (after != text.size() && text[after] != ':') return std::nullopt;
  }
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string_view::npos && colon >= after;
  if (has_port) parts.port = text.substr(colon + 1);
  if (!parts.bracketed) parts.host = text.substr(0, colon);
  return parts;
}

Result<Endpoint> ParseEndpoint(std::string_view text) {
  const auto bad = [&](const std::string& what) {
    return InvalidArgumentError("'" + Shown(text) + "' " + what);
  };
  if (std::any_of(text.begin(), text.end(), IsForbidden)) {
    return bad("has a character that no URL has");
  }
  Endpoint endpoint;
  std::string_view rest = text;
  if (const size_t scheme = rest.find(kSchemeEnd); scheme != std::string_view::npos) {
    endpoint.scheme = LowerCase(rest.substr(0, scheme));
    if (endpoint.scheme != kPlainScheme && endpoint.scheme != kTlsScheme) {
      return bad("is not a URL that begins with http:// or https://");
    }
    rest.remove_prefix(scheme + kSchemeEnd.size());
  }
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return bad("has a query or fragment; write it without");
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  endpoint.path = rest.substr(slash);
  while (endpoint.path.ends_with('/')) endpoint.path.pop_back();
  rest = rest.substr(0, slash);
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    endpoint.user_info = rest.substr(0, at);
    rest.remove_prefix(at + 1);
  }
  const std::optional<HostAndPort> parts = SplitHostAndPort(rest);
  if (!parts.has_value()) return bad("has a bracket that does not end before the port");
  endpoint.host = LowerCase(parts->host);
  if (endpoint.host.empty()) return bad("names no host");
  if ((endpoint.host.find(':') != std::string::npos) != parts->bracketed) {
    return bad(parts->bracketed ? "has no IPv6 address in its brackets"
                                : "has several colons; write an IPv6 address in brackets");
  }
  if (!parts->port.has_value()) return endpoint;
  const std::optional<long long> port = ParseInteger(*parts->port);
  if (!port.has_value() || *port < 1 || *port > kMaxPort) {
    return bad("has a port that is not a number from 1 to 65535");
  }
  endpoint.port = static_cast<int>(*port);
  return endpoint;
}

}  // namespace lambdadnn
