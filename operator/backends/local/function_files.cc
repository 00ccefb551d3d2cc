// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/function_files.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "common/base/files.h"
#include "common/base/text.h"
#include "operator/backends/last_line.h"

namespace lambdadnn {
namespace {

constexpr int64_t kMaxLogBytes = 1024 * 1024;

Result<std::string> ReadTail(const std::string& path, int64_t max_bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return NotFoundError("there is no log " + path);
  const int64_t size = file.tellg();
  const int64_t begin = std::max<int64_t>(0, size - max_bytes);
  std::string text(static_cast<size_t>(size - begin), '\0');
  file.seekg(begin);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace

Result<std::string> ReadLastLines(const std::string& path, int lines) {
  LDNN_ASSIGN_OR_RETURN(std::string text, ReadTail(path, kMaxLogBytes));
  if (lines <= 0) return std::string();
  size_t begin = text.size();
  if (begin > 0 && text.back() == '\n') --begin;  // ends the last line, begins none
  for (int line = 0; line < lines; ++line) {
    const size_t newline = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
    if (newline == std::string::npos) return text;
    begin = newline;
  }
  return text.substr(begin + 1);
}

std::string LastLine(const std::string& path) {
  const Result<std::string> text = ReadTail(path, kLastLineBytes);
  return text.ok() ? LastLineOf(*text) : std::string();
}

int64_t ResidentBytesOf(pid_t pid) {
  const Result<std::string> text = ReadFile("/proc/" + std::to_string(pid) + "/statm");
  if (!text.ok()) return 0;
  const std::vector<std::string> fields = Split(*text, ' ');
  if (fields.size() < 2) return 0;
  return ParseInteger(fields[1]).value_or(0) * ::sysconf(_SC_PAGESIZE);
}

bool AnswersReady(int port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  const timeval limit{0, 100'000};
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  constexpr std::string_view kRequest =
      "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  char answer[12] = {};  // "HTTP/1.1 200"
  const bool answered =
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(descriptor, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(kRequest.size()) &&
      ::recv(descriptor, answer, sizeof answer, MSG_WAITALL) == static_cast<ssize_t>(sizeof answer);
  ::close(descriptor);
  return answered && std::string_view(answer, sizeof answer).ends_with(" 200");
}

}  // namespace lambdadnn
