// SPDX-License-Identifier: Apache-2.0
// A bare server for tests of HTTP clients: each connection is served by a script that writes what
// it likes, byte by byte. Plain POSIX sockets on loopback, so that it shares no code with what it
// tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/executor.h"

namespace lambdadnn {

// Reads one request from a connection: its head and its body, joined. "" when the peer has closed.
std::string ReadRequest(int fd);
// All of it, unless the peer closes.
void Write(int fd, std::string_view text);

// Serves each connection by the next script (the last one again and again), all at the same time,
// and closes it when the script returns.
class RawServer {
 public:
  using Script = std::function<void(int fd)>;
  explicit RawServer(std::vector<Script> scripts);
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  std::string Url(const std::string& path = "/") const;
  int port() const { return port_; }
  int connections() const { return connections_; }

 private:
  void Run();

  std::vector<Script> scripts_;
  ThreadExecutor executor_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::set<int> open_;
  std::unique_ptr<Task> task_;
};

// Answers each of `count` requests with `answer`.
RawServer::Script AnswerWith(std::string answer, int count = 1);
// Answers one request with `head` and then pieces until the client has had enough; adds what was
// taken to `sent` (when given).
RawServer::Script Flood(std::string head, std::string piece, std::atomic<int64_t>* sent = nullptr);
// A chunk of 64 KiB, as chunked bodies have them.
std::string LargeChunk();
// Answers one request with `head` and then a byte now and then until the client has had enough.
RawServer::Script Drip(std::string head);
// Reads requests and never answers.
RawServer::Script Hang();

}  // namespace lambdadnn
