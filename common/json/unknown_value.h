// SPDX-License-Identifier: Apache-2.0
// How errors show a text, and what they say about one that is none of those that may stand there.
#pragma once

#include <span>
#include <string>

namespace lambdadnn {

// In quotes, and cut where it is long.
std::string ShownText(const std::string& text);

// `"adan" is not known here; did you mean Adam? There are SGD, Adam, AdamW`.
std::string UnknownValue(const std::string& text, std::span<const std::string> known);

}  // namespace lambdadnn
