// SPDX-License-Identifier: Apache-2.0
#include "common/http/request_time.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/http/request_errors.h"

namespace lambdadnn {

RequestTime::RequestTime(const HttpRequest& request, std::string origin, double inactivity_seconds)
    : request_(request),
      origin_(std::move(origin)),
      inactivity_seconds_(inactivity_seconds),
      start_(SystemClock().Now()) {
  if (request.cancellation == nullptr) return;
  cancelled_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  LDNN_CHECK(cancelled_fd_ >= 0, "no file descriptor for a request's end");
  subscription_ =
      request.cancellation->Subscribe([fd = cancelled_fd_] { (void)!eventfd_write(fd, 1); });
}

RequestTime::~RequestTime() {
  if (cancelled_fd_ < 0) return;
  request_.cancellation->Unsubscribe(subscription_);
  close(cancelled_fd_);
}

Instant RequestTime::End() const {
  if (request_.total_seconds <= 0) return Instant::max();
  const auto rate = static_cast<double>(request_.lowest_bytes_per_second);
  const double more = rate > 0 ? static_cast<double>(moved_) / rate : 0;
  return start_ + FromSeconds(request_.total_seconds + more);
}

Status RequestTime::Check() {
  if (request_.cancellation != nullptr && request_.cancellation->cancelled()) {
    return EndedByCaller(request_);
  }
  return SystemClock().Now() < End() ? OkStatus() : TookTooLong(request_);
}

Status RequestTime::Await(int socket, short events) {
  const Instant silence = SystemClock().Now() + FromSeconds(inactivity_seconds_);
  for (;;) {
    LDNN_RETURN_IF_ERROR(Check());
    const Instant now = SystemClock().Now();
    if (now >= silence) {
      return NoAnswerInTime(origin_,
                            "nothing moved for " + FormatDouble(inactivity_seconds_) + " s");
    }
    std::array<pollfd, 2> wanted = {pollfd{.fd = socket, .events = events, .revents = 0},
                                    pollfd{.fd = cancelled_fd_, .events = POLLIN, .revents = 0}};
    constexpr double kLongestMillis = 60'000;
    const double millis = ToSeconds(std::min(silence, End()) - now) * 1e3;
    const int timeout = static_cast<int>(std::ceil(std::min(millis, kLongestMillis)));
    poll(wanted.data(), cancelled_fd_ < 0 ? 1 : 2, timeout);
    if (wanted[0].revents != 0 && wanted[1].revents == 0) return OkStatus();
  }
}

}  // namespace lambdadnn
