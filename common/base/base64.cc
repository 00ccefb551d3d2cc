// SPDX-License-Identifier: Apache-2.0
#include "common/base/base64.h"

#include <algorithm>
#include <cstdint>

namespace lambdadnn {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string EncodeBase64(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, text.size() - i);
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < count ? static_cast<unsigned char>(text[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      out += j <= count ? kAlphabet[bits >> (18 - 6 * j) & 63u] : '=';
    }
  }
  return out;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t bits = 0;
    size_t count = 0;
    for (size_t j = 0; j < 4; ++j) {
      const size_t value = kAlphabet.find(text[i + j]);
      const bool last = i + 4 == text.size();
      if (value == std::string_view::npos) {
        if (text[i + j] != '=' || !last || j < 2) return std::nullopt;
        bits <<= 6;
        continue;
      }
      if (count < j) return std::nullopt;  // a digit after '='
      bits = bits << 6 | static_cast<uint32_t>(value);
      ++count;
    }
    for (size_t j = 0; j + 1 < count; ++j) out += static_cast<char>(bits >> (16 - 8 * j) & 255u);
  }
  return out;
}

}  // namespace lambdadnn
