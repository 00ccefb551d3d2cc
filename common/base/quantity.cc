// SPDX-License-Identifier: Apache-2.0
#include "common/base/quantity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

struct Unit {
  std::string_view suffix;
  double bytes;
};

// Longest suffixes first, so that "Mi" is not taken for "i".
constexpr std::array<Unit, 9> kUnits = {{{"Ki", 1024.0},
                                         {"Mi", kMib},
                                         {"Gi", 1024.0 * kMib},
                                         {"Ti", 1024.0 * 1024.0 * kMib},
                                         {"k", 1e3},
                                         {"M", 1e6},
                                         {"G", 1e9},
                                         {"T", 1e12},
                                         {"", 1.0}}};

bool IsPlainDecimal(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string ShownQuantity(std::string_view quantity) {
  return "\"" + std::string(quantity.substr(0, 40)) + "\"";
}

}  // namespace

Result<double> ParseMebibytes(std::string_view quantity) {
  for (const Unit& unit : kUnits) {
    if (!quantity.ends_with(unit.suffix)) continue;
    const std::string_view number = quantity.substr(0, quantity.size() - unit.suffix.size());
    if (!IsPlainDecimal(number)) continue;
    const auto value = ParseDouble(number);
    if (!value) break;
    return *value * unit.bytes / kMib;
  }
  return InvalidArgumentError(ShownQuantity(quantity) +
                              " is not an amount of memory; write it like \"1728Mi\" or \"2Gi\"");
}

Result<int> ParseMemoryMib(std::string_view quantity) {
  LDNN_ASSIGN_OR_RETURN(const double mib, ParseMebibytes(quantity));
  if (mib > std::numeric_limits<int>::max()) {
    return InvalidArgumentError(ShownQuantity(quantity) +
                                " is more memory than any function has; give it in Mi");
  }
  const double whole = std::round(mib);
  if (whole < 1 || std::abs(mib - whole) > 1e-9 * std::max(1.0, whole)) {
    return InvalidArgumentError(
        ShownQuantity(quantity) + " is not a whole number of MiB; write \"" +
        std::to_string(static_cast<int>(std::max(1.0, std::ceil(mib)))) + "Mi\"");
  }
  return static_cast<int>(whole);
}

Result<int64_t> ParseMemoryMibRoundedDown(std::string_view quantity) {
  constexpr double kMost = 1e15;  // far beyond every machine, and exact
  LDNN_ASSIGN_OR_RETURN(const double mib, ParseMebibytes(quantity));
  return static_cast<int64_t>(std::min(mib, kMost));
}

Result<double> ParseQuantity(std::string_view quantity) {
  // Longest suffixes first. An exponent is part of the number: "1E" is exa, "1E3" a thousand.
  static constexpr std::array<Unit, 16> kAll = {{{"Ki", 0x1p10},
                                                 {"Mi", 0x1p20},
                                                 {"Gi", 0x1p30},
                                                 {"Ti", 0x1p40},
                                                 {"Pi", 0x1p50},
                                                 {"Ei", 0x1p60},
                                                 {"n", 1e-9},
                                                 {"u", 1e-6},
                                                 {"m", 1e-3},
                                                 {"k", 1e3},
                                                 {"M", 1e6},
                                                 {"G", 1e9},
                                                 {"T", 1e12},
                                                 {"P", 1e15},
                                                 {"E", 1e18},
                                                 {"", 1.0}}};
  for (const Unit& unit : kAll) {
    if (!quantity.ends_with(unit.suffix)) continue;
    const auto number = ParseDouble(quantity.substr(0, quantity.size() - unit.suffix.size()));
    if (number.has_value() && *number >= 0) return *number * unit.bytes;
    break;
  }
  return InvalidArgumentError(ShownQuantity(quantity) + " is no quantity of Kubernetes");
}

std::string FormatMemoryMib(int memory_mib) { return std::to_string(memory_mib) + "Mi"; }

double RoundedUpToKib(double memory_mib) { return std::ceil(memory_mib * 1024) / 1024; }

std::string FormatMebibytes(double memory_mib) {
  constexpr double kMost = 1e12;
  const auto kib = static_cast<int64_t>(std::ceil(std::clamp(memory_mib, 0.0, kMost) * 1024));
  return kib % 1024 == 0 ? std::to_string(kib / 1024) + "Mi" : std::to_string(kib) + "Ki";
}

}  // namespace lambdadnn
