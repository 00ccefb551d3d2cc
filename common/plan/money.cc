// SPDX-License-Identifier: Apache-2.0
#include "common/plan/money.h"

namespace lambdadnn {

std::string WithCurrency(const std::string& amount, std::string_view currency) {
  if (currency.empty() || currency == kUsDollar) return "$" + amount;
  return amount + " " + std::string(currency);
}

}  // namespace lambdadnn
