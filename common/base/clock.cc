// SPDX-License-Identifier: Apache-2.0
#include "common/base/clock.h"

#include <cstdio>
#include <ctime>
#include <thread>

namespace lambdadnn {

Instant SystemClock::Now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

WallTime SystemClock::Wall() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

void SystemClock::SleepFor(Duration duration) {
  if (duration > Duration::zero()) std::this_thread::sleep_for(duration);
}

Duration ProcessCpuTime() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::string FormatRfc3339(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(time));
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool ParseRfc3339(const std::string& text, WallTime* time) {
  std::tm parts{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return false;
  double fraction = 0;
  if (*rest == '.') {
    double scale = 0.1;
    for (++rest; *rest >= '0' && *rest <= '9'; ++rest, scale /= 10)
      fraction += (*rest - '0') * scale;
  }
  if (std::string_view(rest) != "Z" && std::string_view(rest) != "+00:00") return false;
  // What nanoseconds since 1970 can hold.
  constexpr int kTmEpoch = 1900;
  if (parts.tm_year < 1678 - kTmEpoch || parts.tm_year > 2261 - kTmEpoch) return false;
  *time = WallTime(std::chrono::duration_cast<Duration>(std::chrono::seconds(timegm(&parts)))) +
          FromSeconds(fraction);
  return true;
}

}  // namespace lambdadnn
