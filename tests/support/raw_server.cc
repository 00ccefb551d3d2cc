// SPDX-License-Identifier: Apache-2.0
#include "tests/support/raw_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

// Between two bytes of a drip.
constexpr int kDripMilliseconds = 20;

}  // namespace

std::string ReadRequest(int fd) {
  std::string data;
  std::array<char, 65536> buffer{};
  size_t wanted = std::string::npos;
  while (wanted == std::string::npos || data.size() < wanted) {
    const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) return data;
    data.append(buffer.data(), static_cast<size_t>(got));
    const size_t end = data.find("\r\n\r\n");
    if (end == std::string::npos || wanted != std::string::npos) continue;
    const size_t field = data.find("Content-Length:");
    wanted = end + 4;
    if (field < end) {
      const size_t begin = field + 15;
      wanted += static_cast<size_t>(
          ParseInteger(Trim(data.substr(begin, data.find('\r', begin) - begin))).value());
    }
  }
  return data;
}

void Write(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

RawServer::RawServer(std::vector<Script> scripts) : scripts_(std::move(scripts)) {
  listener_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 16) != 0) {
    std::abort();
  }
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  task_ = executor_.Spawn("raw-server", [this] { Run(); });
}

RawServer::~RawServer() {
  shutdown(listener_, SHUT_RDWR);
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
  }
  task_->Join();
  close(listener_);
}

std::string RawServer::Url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

// Each connection has a task: the client may open a second one while the first is still on its way
// back to its pool.
void RawServer::Run() {
  std::vector<std::unique_ptr<Task>> tasks;
  for (;;) {
    const int fd = accept(listener_, nullptr, nullptr);
    if (fd < 0) return;
    {
      const std::lock_guard lock(mutex_);
      open_.insert(fd);
    }
    const auto index = static_cast<size_t>(connections_++);
    tasks.push_back(executor_.Spawn("raw-connection", [this, fd, index] {
      scripts_[std::min(index, scripts_.size() - 1)](fd);
      const std::lock_guard lock(mutex_);
      open_.erase(fd);
      close(fd);
    }));
  }
}

RawServer::Script AnswerWith(std::string answer, int count) {
  return [answer = std::move(answer), count](int fd) {
    for (int i = 0; i < count; ++i) {
      if (ReadRequest(fd).empty()) return;
      Write(fd, answer);
    }
  };
}

RawServer::Script Flood(std::string head, std::string piece, std::atomic<int64_t>* sent) {
  return [head = std::move(head), piece = std::move(piece), sent](int fd) {
    ReadRequest(fd);
    Write(fd, head);
    for (;;) {
      const ssize_t taken = send(fd, piece.data(), piece.size(), MSG_NOSIGNAL);
      if (taken <= 0) return;
      if (sent != nullptr) *sent += taken;
    }
  };
}

std::string LargeChunk() { return "10000\r\n" + std::string(65536, 'x') + "\r\n"; }

RawServer::Script Drip(std::string head) {
  return [head = std::move(head)](int fd) {
    ReadRequest(fd);
    Write(fd, head);
    pollfd closed{.fd = fd, .events = 0, .revents = 0};
    while (poll(&closed, 1, kDripMilliseconds) == 0 && send(fd, "x", 1, MSG_NOSIGNAL) == 1) {
    }
  };
}

RawServer::Script Hang() {
  return [](int fd) {
    while (!ReadRequest(fd).empty()) {
    }
  };
}

}  // namespace lambdadnn
