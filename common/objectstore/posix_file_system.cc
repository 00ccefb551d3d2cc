// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "common/objectstore/file_system.h"
#include "common/objectstore/filesystem_errors.h"

namespace lambdadnn {
namespace {

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

int ErrorOf(int result) { return result == 0 ? 0 : errno; }

FileInfo InfoOf(const struct stat& info) {
  return {S_ISDIR(info.st_mode), S_ISREG(info.st_mode), static_cast<uint64_t>(info.st_size),
          static_cast<int64_t>(info.st_mtime)};
}

int WriteAll(int fd, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace

Result<std::string> PosixFileSystem::WriteNew(const std::string& folder,
                                              std::span<const ByteView> parts, bool sync) {
  std::string name = folder + "/XXXXXX";
  const OpenFile file(mkostemp(name.data(), O_CLOEXEC));
  if (file.fd() < 0) return ErrnoStatus("creating a temporary file in " + folder, errno);
  Status status;
  for (const ByteView part : parts) {
    const int error = status.ok() ? WriteAll(file.fd(), part) : 0;
    if (error != 0) status = ErrnoStatus("writing a temporary file", error);
  }
  if (status.ok() && fchmod(file.fd(), 0644) != 0) {
    status = ErrnoStatus("setting the mode of " + name, errno);
  }
  if (status.ok() && sync && fsync(file.fd()) != 0) {
    status = ErrnoStatus("syncing " + name, errno);
  }
  if (status.ok()) return name;
  unlink(name.c_str());
  // The folder was there.
  return status.code() == StatusCode::kNotFound ? UnavailableError(status.message()) : status;
}

int PosixFileSystem::Append(const std::string& path, ByteView bytes, bool sync) {
  const OpenFile file(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file.fd() < 0) return errno;
  if (const int error = WriteAll(file.fd(), bytes); error != 0) return error;
  return sync && fsync(file.fd()) != 0 ? errno : 0;
}

int PosixFileSystem::Read(const std::string& path, uint64_t offset, uint64_t length, Bytes* bytes,
                          FileInfo* info) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found{};
  if (file.fd() < 0 || fstat(file.fd(), &found) != 0) return errno;
  *info = InfoOf(found);
  bytes->clear();
  if (!info->is_file || offset >= info->size) return 0;
  bytes->resize(std::min(length, info->size - offset));
  for (size_t done = 0; done < bytes->size();) {
    const ssize_t got = pread(file.fd(), bytes->data() + done, bytes->size() - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) bytes->resize(done);  // became shorter meanwhile
    done += static_cast<size_t>(got);
  }
  return 0;
}

int PosixFileSystem::Look(const std::string& path, FileInfo* info) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return errno;
  *info = InfoOf(found);
  return 0;
}

int PosixFileSystem::Rename(const std::string& from, const std::string& to) {
  return ErrorOf(rename(from.c_str(), to.c_str()));
}

int PosixFileSystem::Link(const std::string& from, const std::string& to) {
  return ErrorOf(link(from.c_str(), to.c_str()));
}

int PosixFileSystem::Unlink(const std::string& path) { return ErrorOf(unlink(path.c_str())); }

int PosixFileSystem::MakeFolder(const std::string& path) {
  return ErrorOf(mkdir(path.c_str(), 0755));
}

int PosixFileSystem::RemoveFolder(const std::string& path) { return ErrorOf(rmdir(path.c_str())); }

int PosixFileSystem::SyncFolder(const std::string& path) {
  const OpenFile folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.fd() < 0 || fsync(folder.fd()) != 0 ? errno : 0;
}

int PosixFileSystem::List(const std::string& path, std::vector<FolderItem>* items) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), &closedir);
  if (folder == nullptr) return errno;
  for (;;) {
    errno = 0;
    const dirent* const item = readdir(folder.get());
    if (item == nullptr) return errno;
    const std::string name = item->d_name;
    if (name == "." || name == "..") continue;
    struct stat info{};
    if (fstatat(dirfd(folder.get()), item->d_name, &info, 0) == 0) {
      items->push_back({name, InfoOf(info)});
    } else if (errno != ENOENT && errno != ELOOP) {
      return errno;
    }
  }
}

}  // namespace lambdadnn
