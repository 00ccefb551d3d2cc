// SPDX-License-Identifier: Apache-2.0
// The names of an enum's values in manifests, on the wire and in flags: one table for each enum,
// declared beside it:
//
//   enum class Loss { kCrossEntropy, kMse };
//   template <>
//   inline constexpr auto kEnumNames<Loss> = EnumNameTable("CrossEntropy", "MSE");
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lambdadnn {

// In the order of the values, which count from 0; empty = the enum has no names.
template <typename Enum>
inline constexpr std::array<std::string_view, 0> kEnumNames{};

template <typename... Names>
constexpr std::array<std::string_view, sizeof...(Names)> EnumNameTable(Names... names) {
  return {std::string_view(names)...};
}

template <typename Enum>
concept NamedEnum = std::is_enum_v<Enum> && !kEnumNames<Enum>.empty();

template <NamedEnum Enum>
constexpr std::string_view EnumName(Enum value) {
  return kEnumNames<Enum>[static_cast<size_t>(value)];
}

// Nothing for another name; case counts.
template <NamedEnum Enum>
constexpr std::optional<Enum> FindEnum(std::string_view name) {
  for (size_t i = 0; i < kEnumNames<Enum>.size(); ++i) {
    if (kEnumNames<Enum>[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

template <NamedEnum Enum>
std::vector<std::string> EnumNameList() {
  return {kEnumNames<Enum>.begin(), kEnumNames<Enum>.end()};
}

}  // namespace lambdadnn
