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
  *time =
      std::chrono::time_point_cast<Duration>(std::chrono::system_clock::from_time_t(timegm(&utc)));
  return true;
}

}  // namespace lambdadnn
