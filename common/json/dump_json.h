// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lambdadnn {

// The text of `json`: in one line, or indented by so many spaces a level. Bytes that are not UTF-8,
// which a log or a store may have said, become U+FFFD; nothing is thrown on.
inline std::string DumpJson(const nlohmann::json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace lambdadnn
