// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_transport.h"

#include <algorithm>

namespace lambdadnn {
namespace {

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string_view FindField(const HttpFields& fields, std::string_view name) {
  for (const auto& [field, value] : fields) {
    if (std::equal(field.begin(), field.end(), name.begin(), name.end(),
                   [](char a, char b) { return LowerAscii(a) == LowerAscii(b); })) {
      return value;
    }
  }
  return {};
}

Status HttpTransportOptions::Validate() const {
  constexpr double kMaxSeconds = 86400;
  if (inactivity_seconds > 0 && inactivity_seconds <= kMaxSeconds) return OkStatus();
  return InvalidArgumentError("HTTP timeout of " + std::to_string(inactivity_seconds) +
                              " s; choose more than 0 and at most a day");
}

}  // namespace lambdadnn
