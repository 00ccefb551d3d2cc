// SPDX-License-Identifier: Apache-2.0
#include "common/plan/money.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace lambdadnn {

std::string WithCurrency(const std::string& amount, std::string_view currency) {
  if (currency.empty() || currency == kUsDollar) return "$" + amount;
  return amount + " " + std::string(currency);
}

int PlacesOf(double amount, int significant_digits, int least, int most) {
  if (amount == 0) return least;
  const double places = significant_digits - 1 - std::floor(std::log10(std::abs(amount)));
  return static_cast<int>(std::clamp<double>(places, least, most));
}

std::string FormatCost(double cost, std::string_view currency) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", PlacesOf(cost, 2, 4, 9), cost);
  return WithCurrency(text, currency);
}

}  // namespace lambdadnn
