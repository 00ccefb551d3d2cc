// SPDX-License-Identifier: Apache-2.0
// Text inside URLs (RFC 3986).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lambdadnn {

// Every byte but letters, digits, -._~ and those of `keep` as %XX.
std::string PercentEncode(std::string_view text, std::string_view keep = "");
// The text that was encoded; nothing where a % has no two hex digits behind it.
std::optional<std::string> PercentDecode(std::string_view text);

}  // namespace lambdadnn
