// SPDX-License-Identifier: Apache-2.0
#include "common/base/percent_encoding.h"

namespace lambdadnn {

std::string PercentEncode(std::string_view text, std::string_view keep) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' ||
                       keep.find(c) != std::string_view::npos;
    if (plain) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15u];
    }
  }
  return encoded;
}

}  // namespace lambdadnn
