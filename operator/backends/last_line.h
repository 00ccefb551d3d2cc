// SPDX-License-Identifier: Apache-2.0
// The last line of a function's log, for a condition's message. Header only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/text.h"

namespace lambdadnn {

// Longer lines lose their begin.
inline constexpr size_t kLastLineBytes = 4096;

// The last line of a log that is not empty; "" when there is none.
inline std::string LastLineOf(std::string_view log) {
  const std::string_view said = Trim(log);
  const std::string_view line = said.substr(said.rfind('\n') + 1);
  return std::string(line.substr(line.size() - std::min(line.size(), kLastLineBytes)));
}

}  // namespace lambdadnn
