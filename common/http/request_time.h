// SPDX-License-Identifier: Apache-2.0
// The waits of one request on a socket: they end after a silence, when the request's total time is
// over, and when it is cancelled. Private to this folder.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/http/http_transport.h"

namespace lambdadnn {

class RequestTime {
 public:
  // Begins now. `request` outlives this; `origin` for messages.
  RequestTime(const HttpRequest& request, std::string origin, double inactivity_seconds);
  ~RequestTime();
  RequestTime(const RequestTime&) = delete;
  RequestTime& operator=(const RequestTime&) = delete;

  // Waits until the socket is ready for `events` (poll(2)), or broken. Else says which of the three
  // ends has come, also when the socket never has to be waited for.
  Status Await(int socket, short events);
  // The same without a wait.
  Status Check();
  // Bytes of a body that were sent or received.
  void Moved(uint64_t bytes) { moved_ += bytes; }

 private:
  Instant End() const;

  const HttpRequest& request_;
  const std::string origin_;
  const double inactivity_seconds_;
  const Instant start_;
  uint64_t moved_ = 0;
  int cancelled_fd_ = -1;  // an eventfd; -1 = the request cannot be cancelled
  int subscription_ = 0;
};

}  // namespace lambdadnn
