// SPDX-License-Identifier: Apache-2.0
// A bare client for tests of HTTP servers: sends exactly the bytes it is given and shows what came
// back. Plain POSIX sockets, so that it shares no code with what it tests.
#pragma once

#include <string>
#include <string_view>

namespace lambdadnn {

class RawConnection {
 public:
  // "127.0.0.1" and a port, or the path of a Unix socket. Not connected: Connected() is false.
  RawConnection(const std::string& address, int port);
  explicit RawConnection(const std::string& unix_path);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool Connected() const { return descriptor_ >= 0; }
  // False when the peer has closed.
  bool Send(std::string_view bytes);
  // Everything until the peer closes, or until `seconds` passed without a byte.
  std::string ReadAll(double seconds = 10);
  // Until `text` has come (included), the peer closes, or `seconds` passed without a byte.
  std::string ReadUntil(std::string_view text, double seconds = 10);
  void Close();

 private:
  int descriptor_ = -1;
};

struct RawReply {
  int status = 0;         // 0: no answer
  std::string head;       // status line and fields
  std::string body;       // chunks already joined
  bool complete = false;  // the body had its full length or its last chunk
};

RawReply ParseReply(std::string_view bytes);
// The bytes of what Fetch sends.
std::string FormatRequest(std::string_view method_and_target, std::string_view key,
                          std::string_view body);
// One request on a connection of its own. `method_and_target` is "GET /healthz"; an empty `key`
// sends no Authorization.
RawReply Fetch(int port, std::string_view method_and_target, std::string_view key = {},
               std::string_view body = {});
RawReply FetchUnix(const std::string& path, std::string_view method_and_target,
                   std::string_view body = {});

}  // namespace lambdadnn
