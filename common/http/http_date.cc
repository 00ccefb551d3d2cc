// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_date.h"

#include <time.h>

#include <string>

namespace lambdadnn {

bool ParseHttpDate(std::string_view text, WallTime* time) {
  std::tm utc{};
  const std::string copy(text);
  const char* const end = strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  if (end == nullptr || *end != '\0') return false;
  // Nanoseconds hold these years, and the differences between any two of them.
  constexpr int kTmEpoch = 1900;
  if (utc.tm_year < 1970 - kTmEpoch || utc.tm_year > 2261 - kTmEpoch) return false;
  *time =
      std::chrono::time_point_cast<Duration>(std::chrono::system_clock::from_time_t(timegm(&utc)));
  return true;
}

}  // namespace lambdadnn
