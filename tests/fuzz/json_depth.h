// SPDX-License-Identifier: Apache-2.0
// That no value read from outside is nested deeper than its reader allows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

// Without recursion, which is what too deep a value would make crash.
inline void CheckDepth(const Json& root, size_t limit) {
  std::vector<std::pair<const Json*, size_t>> left = {{&root, 1}};
  while (!left.empty()) {
    const auto [value, level] = left.back();
    left.pop_back();
    if (!value->is_structured()) continue;
    LDNN_CHECK(level <= limit, "nested deeper than " + std::to_string(limit));
    for (const Json& child : *value) left.emplace_back(&child, level + 1);
  }
}

}  // namespace lambdadnn
