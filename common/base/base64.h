// SPDX-License-Identifier: Apache-2.0
// Base64 with padding (RFC 4648, section 4), as Kubernetes writes bytes in JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lambdadnn {

std::string EncodeBase64(std::string_view text);
// nullopt for anything but what EncodeBase64 writes: no line breaks, padding required.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace lambdadnn
