// SPDX-License-Identifier: Apache-2.0
#include "common/base/go_duration.h"

#include <algorithm>
#include <array>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
// Longer names before those that they begin with.
constexpr std::array<Unit, 7> kUnits = {{{"ns", 1e-9},
                                         {"us", 1e-6},
                                         {"\xc2\xb5s", 1e-6},
                                         {"ms", 1e-3},
                                         {"s", 1},
                                         {"m", 60},
                                         {"h", 3600}}};

std::optional<double> TakeUnit(std::string_view* text) {
  for (const Unit& unit : kUnits) {
    if (!text->starts_with(unit.name)) continue;
    text->remove_prefix(unit.name.size());
    return unit.seconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> ParseGoDuration(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789.";
  if (text.empty()) return std::nullopt;
  if (const auto whole = ParseInteger(text)) {
    return *whole < 0 ? std::nullopt : std::optional<double>(static_cast<double>(*whole));
  }
  double seconds = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_not_of(kDigits), text.size());
    const std::optional<double> number = ParseDouble(text.substr(0, end));
    text.remove_prefix(end);
    const std::optional<double> unit = TakeUnit(&text);
    if (!number.has_value() || !unit.has_value()) return std::nullopt;
    seconds += *number * *unit;
  }
  return seconds;
}

}  // namespace lambdadnn
