// SPDX-License-Identifier: Apache-2.0
// Decoding of lists of JSON objects.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "common/json/json_reader.h"

namespace lambdadnn {

// Every item of `list` as `decode(item, path of the item)` reads it, which reports its own errors.
// What is no list is reported with `otherwise`.
template <typename Decode>
auto DecodeList(const Json& list, const std::string& path, std::vector<FieldError>* errors,
                Decode decode, const char* otherwise = "must be a list")
    -> std::vector<std::invoke_result_t<Decode, const Json&, const std::string&>> {
  std::vector<std::invoke_result_t<Decode, const Json&, const std::string&>> items;
  if (!list.is_array()) {
    errors->push_back({path, otherwise});
    return items;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    items.push_back(decode(list[i], path + "[" + std::to_string(i) + "]"));
  }
  return items;
}

}  // namespace lambdadnn
