// SPDX-License-Identifier: Apache-2.0
// Tables of rows with a member `name`, by which people choose one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/text.h"

namespace lambdadnn {

// Null when there is none of this name.
template <typename Row>
const Row* FindRow(std::span<const Row> rows, std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// "exact, algorithm1, ...".
template <typename Row>
std::string NamesOf(std::span<const Row> rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.emplace_back(row.name);
  return Join(names, ", ");
}

}  // namespace lambdadnn
