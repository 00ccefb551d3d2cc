// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/micro_time.h"

#include <cstdio>

namespace lambdadnn {

std::string FormatMicroTime(WallTime time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time - whole).count();
  char digits[16];
  std::snprintf(digits, sizeof digits, ".%06d", static_cast<int>(micros));
  std::string text = FormatRfc3339(whole);
  text.insert(text.size() - 1, digits);
  return text;
}

}  // namespace lambdadnn
