// SPDX-License-Identifier: Apache-2.0
// Amounts of money for people.
#pragma once

#include <string>
#include <string_view>

namespace lambdadnn {

inline constexpr std::string_view kUsDollar = "USD";

// "0.0341" of "USD" or of no currency: "$0.0341"; of others "0.0341 EUR".
std::string WithCurrency(const std::string& amount, std::string_view currency);

// Places after the point that show so many significant digits; within [least, most], and `least` of
// nothing.
int PlacesOf(double amount, int significant_digits, int least, int most);

// Of a job so far: four decimals, and of less than a thousandth two significant digits.
std::string FormatCost(double cost, std::string_view currency);

}  // namespace lambdadnn
