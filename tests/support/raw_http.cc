// SPDX-License-Identifier: Apache-2.0
#include "tests/support/raw_http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace lambdadnn {
namespace {

int ConnectTo(int family, const sockaddr* address, socklen_t size) {
  const int descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor >= 0 && ::connect(descriptor, address, size) == 0) return descriptor;
  if (descriptor >= 0) ::close(descriptor);
  return -1;
}

}  // namespace

RawConnection::RawConnection(const std::string& address, int port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &in.sin_addr) != 1) return;
  descriptor_ = ConnectTo(AF_INET, reinterpret_cast<const sockaddr*>(&in), sizeof in);
}

RawConnection::RawConnection(const std::string& unix_path) {
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  if (unix_path.size() >= sizeof un.sun_path) return;
  std::memcpy(un.sun_path, unix_path.data(), unix_path.size());
  descriptor_ = ConnectTo(AF_UNIX, reinterpret_cast<const sockaddr*>(&un), sizeof un);
}

RawConnection::~RawConnection() { Close(); }

void RawConnection::Close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

bool RawConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string RawConnection::ReadAll(double seconds) { return ReadUntil({}, seconds); }

std::string RawConnection::ReadUntil(std::string_view text, double seconds) {
  std::string out;
  while (text.empty() || out.find(text) == std::string::npos) {
    pollfd poll{descriptor_, POLLIN, 0};
    if (::poll(&poll, 1, static_cast<int>(seconds * 1000)) <= 0) break;
    char buffer[4096];
    const ssize_t got = ::recv(descriptor_, buffer, sizeof buffer, 0);
    if (got <= 0) break;
    out.append(buffer, static_cast<size_t>(got));
  }
  return out;
}

RawReply ParseReply(std::string_view bytes) {
  RawReply reply;
  const size_t end = bytes.find("\r\n\r\n");
  if (!bytes.starts_with("HTTP/1.1 ") || end == std::string_view::npos) return reply;
  reply.status = std::atoi(std::string(bytes.substr(9, 3)).c_str());
  reply.head = std::string(bytes.substr(0, end + 2));
  bytes.remove_prefix(end + 4);
  constexpr std::string_view kLength = "Content-Length: ";
  if (const size_t at = reply.head.find(kLength); at != std::string::npos) {
    const size_t length = std::strtoull(reply.head.c_str() + at + kLength.size(), nullptr, 10);
    reply.complete = bytes.size() >= length;
    reply.body = std::string(bytes.substr(0, length));
    return reply;
  }
  while (true) {
    const size_t line = bytes.find("\r\n");
    if (line == std::string_view::npos) return reply;
    const size_t size = std::strtoull(std::string(bytes.substr(0, line)).c_str(), nullptr, 16);
    bytes.remove_prefix(line + 2);
    if (size == 0) {
      reply.complete = bytes.starts_with("\r\n");
      return reply;
    }
    if (bytes.size() < size + 2) return reply;
    reply.body += std::string(bytes.substr(0, size));
    bytes.remove_prefix(size + 2);
  }
}

std::string FormatRequest(std::string_view method_and_target, std::string_view key,
                          std::string_view body) {
  std::string request(method_and_target);
  request += " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n";
  if (!key.empty()) request += "Authorization: Bearer " + std::string(key) + "\r\n";
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  request += "\r\n";
  request += body;
  return request;
}

RawReply Fetch(int port, std::string_view method_and_target, std::string_view key,
               std::string_view body) {
  RawConnection connection("127.0.0.1", port);
  if (!connection.Connected()) return {};
  connection.Send(FormatRequest(method_and_target, key, body));
  return ParseReply(connection.ReadAll());
}

RawReply FetchUnix(const std::string& path, std::string_view method_and_target,
                   std::string_view body) {
  RawConnection connection(path);
  if (!connection.Connected()) return {};
  connection.Send(FormatRequest(method_and_target, {}, body));
  return ParseReply(connection.ReadAll());
}

}  // namespace lambdadnn
