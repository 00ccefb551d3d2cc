// SPDX-License-Identifier: Apache-2.0
// Access to nested fields of JSON from outside, such as an API server's, where any value may have
// an unexpected type. The library's own accessors throw then; these do not.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "common/json/json_reader.h"

namespace lambdadnn {

// nullptr when the field, or an object on the way to it, is absent or the way leads through what is
// no object.
inline const Json* FindPath(const Json& value, std::initializer_list<std::string_view> path) {
  const Json* at = &value;
  for (const std::string_view name : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(name);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

// "" when it is absent or no text.
inline std::string TextAt(const Json& value, std::initializer_list<std::string_view> path) {
  const Json* found = FindPath(value, path);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

// Whether it is there and true.
inline bool IsTrueAt(const Json& value, std::initializer_list<std::string_view> path) {
  const Json* found = FindPath(value, path);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

}  // namespace lambdadnn
