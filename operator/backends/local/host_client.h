// SPDX-License-Identifier: Apache-2.0
// One request to a function host over its Unix socket.
#pragma once

#include <string>

#include "common/base/status.h"

namespace lambdadnn {

// Blocks for at most `timeout_seconds`; a connection of its own for each call. Thread-safe.
class HostClient {
 public:
  explicit HostClient(std::string socket, double timeout_seconds = 5)
      : socket_(std::move(socket)), timeout_seconds_(timeout_seconds) {}

  // The body of a 2xx answer. kUnavailable: no host, or no answer in time; otherwise the code and
  // message that the host gave.
  Result<std::string> Call(const std::string& method, const std::string& target,
                           const std::string& body = {}) const;
  const std::string& socket() const { return socket_; }

 private:
  const std::string socket_;
  const double timeout_seconds_;
};

}  // namespace lambdadnn
