// SPDX-License-Identifier: Apache-2.0
// How rules between fields read a job's JSON: what is absent or of a wrong type breaks no rule.
// Private to job_rules.cc and dataset_rules.cc.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/text.h"
#include "operator/api/job_validation.h"

namespace lambdadnn {

inline const Json* Find(const Json& self, const char* name) {
  if (!self.is_object()) return nullptr;
  const auto found = self.find(name);
  return found == self.end() || found->is_null() ? nullptr : &*found;
}

// Follows "a.b.c".
inline const Json* FindPath(const Json& self, std::string_view path) {
  const Json* at = &self;
  for (const std::string& name : Split(path, '.')) {
    at = Find(*at, name.c_str());
    if (at == nullptr) return nullptr;
  }
  return at;
}

inline bool Has(const Json& self, const char* name) { return Find(self, name) != nullptr; }

inline std::optional<int64_t> WholeAt(const Json& self, std::string_view path) {
  const Json* value = FindPath(self, path);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<int64_t>();
}

inline std::optional<double> AsDecimal(const Json& self) {
  if (!self.is_string()) return std::nullopt;
  return ParseDouble(self.get_ref<const std::string&>());
}

// Absent or unreadable: 0, as the default of most decimals.
inline double Decimal(const Json& self, std::string_view path) {
  const Json* value = FindPath(self, path);
  return value == nullptr ? 0 : AsDecimal(*value).value_or(0);
}

inline std::string Text(const Json& self, std::string_view path) {
  const Json* value = FindPath(self, path);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

inline bool Flag(const Json& self, const char* name) {
  const Json* value = Find(self, name);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

// a <= b, or one of them is not there.
inline bool NotAbove(std::optional<int64_t> a, std::optional<int64_t> b) {
  return !a || !b || *a <= *b;
}

inline bool IsAboveZero(const Json& self, const Json*) { return AsDecimal(self).value_or(1) > 0; }
inline bool IsAtMostOne(const Json& self, const Json*) { return AsDecimal(self).value_or(0) <= 1; }
inline bool IsBelowOne(const Json& self, const Json*) { return AsDecimal(self).value_or(0) < 1; }

inline constexpr const char* kAboveZero = "must be above 0";
inline constexpr const char* kAtMostOne = "must be at most 1";

// Those of spec.dataset.
std::span<const JobRule> DatasetRules();

}  // namespace lambdadnn
