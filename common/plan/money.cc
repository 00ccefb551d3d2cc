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

std::string FormatCost(double cost, std::string_view currency) {
  constexpr int kPlaces = 4;
  constexpr int kMostPlaces = 9;
  const double digits = cost > 0 ? 1 - std::floor(std::log10(cost)) : 0;
  const int places = static_cast<int>(std::clamp<double>(digits, kPlaces, kMostPlaces));
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", places, cost);
  return WithCurrency(text, currency);
}

}  // namespace lambdadnn
