// SPDX-License-Identifier: Apache-2.0
#include "common/base/time_text.h"

#include <chrono>
#include <cstdio>

namespace lambdadnn {

std::string FormatRfc3339Millis(WallTime time) {
  const WallTime second = std::chrono::floor<std::chrono::seconds>(time);
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(time - second);
  std::string text = FormatRfc3339(second);
  char fraction[8];
  std::snprintf(fraction, sizeof fraction, ".%03d", static_cast<int>(millis.count()));
  return text.insert(text.size() - 1, fraction);
}

}  // namespace lambdadnn
