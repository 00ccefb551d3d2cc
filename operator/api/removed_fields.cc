// SPDX-License-Identifier: Apache-2.0
#include "operator/api/removed_fields.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "common/json/unknown_field.h"

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
    {"platform.memory.minMiB", "write min, an amount of memory such as \"128Mi\""},
    {"platform.memory.maxMiB", "write max, an amount of memory such as \"2Gi\""},
    {"platform.memory.stepMiB", "write step, an amount of memory such as \"64Mi\""},
    {"platform.totalMemoryMiB", "write totalMemory, an amount of memory such as \"8Gi\""},
    {"platform.sidecarMemoryMiB", "write sidecarMemory, an amount of memory such as \"64Mi\""},
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

const RemovedField* FindRemoved(std::string_view path) {
  const std::string pattern = PatternOf(path);
  const auto* const found = std::find_if(std::begin(kRemoved), std::end(kRemoved),
                                         [&](const auto& each) { return each.path == pattern; });
  return found == std::end(kRemoved) ? nullptr : found;
}

}  // namespace

bool IsRemovedField(std::string_view path) { return FindRemoved(path) != nullptr; }

void SayInsteadOfRemovedFields(std::string_view root, std::vector<FieldError>* errors) {
  for (FieldError& error : *errors) {
    if (!IsUnknownField(error)) continue;
    const bool below = !std::string_view(error.path).starts_with(root);
    const RemovedField* const found =
        FindRemoved(below ? std::string(root) + error.path : error.path);
    if (found == nullptr) continue;
    error.message = std::string(kUnknownField) + "; " + std::string(found->instead);
  }
}

}  // namespace lambdadnn
