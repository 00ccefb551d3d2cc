// SPDX-License-Identifier: Apache-2.0
#include "common/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace lambdadnn {
namespace {

Status ErrnoError(const std::string& doing, int error) {
  const std::string message = doing + ": " + std::strerror(error);
  switch (error) {
    case ENOENT:
      return NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
      return ResourceExhaustedError(message + "; free some space and try again");
    default:
      return UnavailableError(message);
  }
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return ErrnoError("writing " + path, errno);
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

}  // namespace

Result<std::string> ReadFile(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return ErrnoError("reading " + path, errno);
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError("reading " + path, errno);
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
  }
}

Status WriteFileAtomically(const std::string& path, std::string_view content, bool sync) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  std::string temporary = path + ".XXXXXX";
  {
    const FileDescriptor file(mkostemp(temporary.data(), O_CLOEXEC));
    if (file.get() < 0) return ErrnoError("writing " + path, errno);
    Status status = WriteAll(file.get(), content, path);
    if (status.ok() && fchmod(file.get(), 0644) != 0) status = ErrnoError("writing " + path, errno);
    if (status.ok() && sync && fsync(file.get()) != 0)
      status = ErrnoError("syncing " + path, errno);
    if (!status.ok()) {
      unlink(temporary.c_str());
      return status;
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return ErrnoError("writing " + path, error);
  }
  return OkStatus();
}

std::optional<std::string> GetEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return {};
  return std::string(value);
}

Result<std::optional<std::string>> GetSecret(const std::string& name) {
  std::optional<std::string> value = GetEnvironment(name);
  if (value.has_value() && !value->empty()) return value;
  const std::string variable = name + "_FILE";
  const std::string file = GetEnvironment(variable).value_or("");
  if (file.empty()) return value;
  Result<std::string> content = ReadFile(file);
  if (!content.ok()) return content.status().WithContext(variable);
  while (!content->empty() && (content->back() == '\n' || content->back() == '\r')) {
    content->pop_back();
  }
  return std::optional<std::string>(*std::move(content));
}

}  // namespace lambdadnn
