// SPDX-License-Identifier: Apache-2.0
#include "operator/api/removed_fields.h"

namespace lambdadnn {
namespace {

struct RemovedField {
  std::string_view path;  // [] = any item of a list
  std::string_view instead;
};

constexpr RemovedField kRemoved[] = {
    {"spec.profile.workerBaseMemoryMiB",
     "write workerBaseMemory, an amount of memory such as \"180Mi\""},
    {"spec.profile.trainingRate.table[].memoryMiB",
     "write memory, an amount of memory such as \"512Mi\""},
    {"spec.profile.evaluationRate.table[].memoryMiB",
     "write memory, an amount of memory such as \"512Mi\""},
};

// Without the numbers of list items.
std::string PatternOf(std::string_view path) {
  std::string pattern;
  bool in_index = false;
  for (const char c : path) {
    if (c == ']') in_index = false;
    if (!in_index) pattern += c;
    if (c == '[') in_index = true;
  }
  return pattern;
}

}  // namespace

std::optional<std::string> InsteadOfRemovedField(std::string_view path) {
  const std::string pattern = PatternOf(path);
  for (const RemovedField& removed : kRemoved) {
    if (removed.path == pattern) return std::string(removed.instead);
  }
  return std::nullopt;
}

}  // namespace lambdadnn
