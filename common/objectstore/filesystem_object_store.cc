// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/filesystem_object_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "common/objectstore/filesystem_errors.h"
#include "common/objectstore/filesystem_layout.h"
#include "common/objectstore/filesystem_walk.h"

namespace lambdadnn {
namespace {

// A writer that is still alive has touched its temporary file more recently than this.
constexpr time_t kAbandonedAfterSeconds = 3600;
// Each try loses a race against a Delete that removed the folder just made.
constexpr int kMaxPublishTries = 1000;

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

std::string BesideFolder(const std::string& path) {
  return path + std::string(kBesideFolderSuffix);
}

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool IsFolder(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

Status WriteAll(int fd, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus("writing a temporary file", errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return OkStatus();
}

Status SyncPath(const std::string& path) {
  const OpenFile folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd() < 0 || fsync(folder.fd()) != 0) {
    return ErrnoStatus("syncing the folder " + path, errno);
  }
  return OkStatus();
}

uint64_t NumberOf(std::string_view key) { return Xxh3(AsBytes(key)); }

class FileWatch final : public ArrivalWatch {
 public:
  FileWatch(WakeupRow& wakeups, uint64_t number)
      : wakeups_(wakeups), number_(number), seen_(wakeups.Rung(number)) {}

  bool Wait(Duration at_most) override {
    wakeups_.Wait(number_, seen_, at_most);
    const uint32_t before = std::exchange(seen_, wakeups_.Rung(number_));
    return seen_ != before;
  }

 private:
  WakeupRow& wakeups_;
  const uint64_t number_;
  uint32_t seen_;
};

// The object's file, wherever it lies, opened; its size in `info`.
Result<OpenFile> OpenObject(const std::string& root, const std::string& path, struct stat* info) {
  for (const std::string& candidate : {path, BesideFolder(path)}) {
    OpenFile file(open(candidate.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.fd() < 0) {
      if (errno == ENOENT || errno == ENOTDIR) continue;
      return ErrnoStatus("reading " + candidate, errno);
    }
    if (fstat(file.fd(), info) != 0) return ErrnoStatus("reading " + candidate, errno);
    if (S_ISREG(info->st_mode)) return file;
  }
  if (!Exists(root)) {
    return NotFoundError("there is no object " + path + ": the store's folder " + root +
                         " does not exist");
  }
  return NotFoundError("there is no object " + path);
}

}  // namespace

FilesystemObjectStore::FilesystemObjectStore(std::string root)
    : root_([&] {
        while (root.size() > 1 && root.ends_with('/')) root.pop_back();
        return std::move(root);
      }()) {
  LDNN_CHECK(root_.starts_with('/'), "a file store needs an absolute path, not " + root_);
}

Status FilesystemObjectStore::Put(std::string_view key, std::span<const ByteView> parts,
                                  const PutOptions& options) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const std::string path = root_ + "/" + KeyToPath(key);
  const std::string context = "writing " + path;
  Result<std::string> temporary = WriteTemporary(parts, options);
  if (!temporary.ok()) return temporary.status().WithContext(context);
  const Status published = Publish(*temporary, key, path, options.if_absent);
  // After a rename the name is gone; after a link or a failure it is not.
  unlink(temporary->c_str());
  if (!published.ok()) return published;
  if (options.ephemeral) {
    if (WakeupRow* const wakeups = Wakeups()) wakeups->Ring(NumberOf(key));
    return OkStatus();
  }
  return SyncFolders(path).WithContext(context);
}

Result<std::string> FilesystemObjectStore::WriteTemporary(std::span<const ByteView> parts,
                                                          const PutOptions& options) {
  const std::string folder = root_ + "/" + std::string(kTemporaryFolder);
  std::string name;
  const auto create = [&] {
    name = folder + "/XXXXXX";
    return mkostemp(name.data(), O_CLOEXEC);
  };
  int fd = create();
  if (fd < 0 && errno == ENOENT) {
    LDNN_RETURN_IF_ERROR(MakeFolders(folder + "/file"));
    fd = create();
  }
  if (fd < 0) return ErrnoStatus("creating a temporary file in " + folder, errno);
  const OpenFile file(fd);
  if (!cleaned_.exchange(true)) RemoveOldTemporaries(name);

  Status status;
  for (const ByteView part : parts) {
    if (status.ok()) status = WriteAll(fd, part);
  }
  if (status.ok() && fchmod(fd, 0644) != 0) {
    status = ErrnoStatus("setting the mode of " + name, errno);
  }
  if (status.ok() && !options.ephemeral && fsync(fd) != 0) {
    status = ErrnoStatus("syncing " + name, errno);
  }
  if (!status.ok()) {
    unlink(name.c_str());
    return status;
  }
  return name;
}

// What a killed writer left. Ages are compared with a file just made, so no clock is needed and
// another machine's clock does no harm.
void FilesystemObjectStore::RemoveOldTemporaries(const std::string& newest) {
  const std::string folder = ParentOf(newest);
  struct stat now{};
  if (stat(newest.c_str(), &now) != 0) return;
  DIR* const items = opendir(folder.c_str());
  if (items == nullptr) return;
  while (const dirent* const item = readdir(items)) {
    if (item->d_name == kWakeupsFile) continue;
    const std::string path = folder + "/" + item->d_name;
    struct stat info{};
    if (lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_mtime + kAbandonedAfterSeconds < now.st_mtime) {
      unlink(path.c_str());
    }
  }
  closedir(items);
}

Status FilesystemObjectStore::Publish(const std::string& temporary, std::string_view key,
                                      const std::string& path, bool if_absent) {
  const std::string beside = BesideFolder(path);
  const auto place = [&](const std::string& target) {
    const int done = if_absent ? link(temporary.c_str(), target.c_str())
                               : rename(temporary.c_str(), target.c_str());
    return done == 0 ? 0 : errno;
  };
  const Status already_there =
      AlreadyExistsError("object '" + std::string(key) + "' is already in " + Describe());
  for (int tries = 0; tries < kMaxPublishTries; ++tries) {
    int error = 0;
    {
      const std::shared_lock lock(shape_mutex_);
      if (if_absent && Exists(beside)) return already_there;
      error = place(path);
      if (error == 0) {
        if (!if_absent) unlink(beside.c_str());
        return OkStatus();
      }
      if ((error == EISDIR || error == EEXIST) && IsFolder(path)) error = place(beside);
      if (error == 0) return OkStatus();
    }
    if (error == EEXIST) return already_there;
    if (error != ENOENT && error != ENOTDIR) return ErrnoStatus("writing " + path, error);
    LDNN_RETURN_IF_ERROR(MakeFolders(path));
  }
  return UnavailableError("writing " + path + ": its folder is removed again and again");
}

WakeupRow* FilesystemObjectStore::Wakeups() {
  const std::lock_guard lock(wakeups_mutex_);
  if (wakeups_ == nullptr) {
    std::string path = root_ + "/" + std::string(kTemporaryFolder) + "/";
    path += kWakeupsFile;
    auto opened = WakeupRow::Open(path);
    if (opened.ok()) wakeups_ = *std::move(opened);
  }
  return wakeups_.get();
}

std::unique_ptr<ArrivalWatch> FilesystemObjectStore::Watch(std::string_view key) {
  WakeupRow* const wakeups = Wakeups();
  return wakeups == nullptr ? nullptr : std::make_unique<FileWatch>(*wakeups, NumberOf(key));
}

Status FilesystemObjectStore::MakeFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), 0755) == 0) continue;
    const int error = errno;  // the next look at the folder sets it anew
    if (error != EEXIST && !IsFolder(folder)) {
      // ENOENT: a Delete removed the folder above; the caller tries again.
      if (error == ENOENT) return OkStatus();
      return ErrnoStatus("making the folder " + folder, error);
    }
    if (IsFolder(folder)) continue;
    if (slash <= root_.size()) {
      return FailedPreconditionError("the store's folder " + root_ + " cannot be made: " + folder +
                                     " is a file; choose another folder");
    }
    LDNN_RETURN_IF_ERROR(MoveAsideForFolder(folder));
  }
  return OkStatus();
}

Status FilesystemObjectStore::MoveAsideForFolder(const std::string& path) {
  const std::unique_lock lock(shape_mutex_);
  if (IsFolder(path)) return OkStatus();
  if (rename(path.c_str(), BesideFolder(path).c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus("moving the object " + path, errno);
  }
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST && errno != ENOENT) {
    return ErrnoStatus("making the folder " + path, errno);
  }
  return OkStatus();
}

Status FilesystemObjectStore::SyncFolders(const std::string& path) const {
  for (std::string folder = ParentOf(path); folder.size() >= root_.size();
       folder = ParentOf(folder)) {
    Status status = SyncPath(folder);
    // A folder that is gone went with the object: somebody has deleted it already.
    if (!status.ok() && status.code() != StatusCode::kNotFound) return status;
    if (folder.empty()) break;
  }
  return OkStatus();
}

Result<Bytes> FilesystemObjectStore::Get(std::string_view key, std::optional<ByteRange> range) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const std::string path = root_ + "/" + KeyToPath(key);
  struct stat info{};
  LDNN_ASSIGN_OR_RETURN(const OpenFile file, OpenObject(root_, path, &info));
  const auto size = static_cast<uint64_t>(info.st_size);
  LDNN_ASSIGN_OR_RETURN(const ByteRange part,
                        ClipRange(key, range.value_or(ByteRange{0, size}), size));
  Bytes bytes(part.length);
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got = pread(file.fd(), bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(part.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus("reading " + path, errno);
    if (got == 0) return DataLossError("reading " + path + ": the file became shorter meanwhile");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

Result<ObjectInfo> FilesystemObjectStore::Head(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  struct stat info{};
  LDNN_RETURN_IF_ERROR(OpenObject(root_, root_ + "/" + KeyToPath(key), &info).status());
  return ObjectInfo{std::string(key), static_cast<uint64_t>(info.st_size)};
}

Status FilesystemObjectStore::Delete(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const std::string path = root_ + "/" + KeyToPath(key);
  const std::string beside = BesideFolder(path);
  // The old object beside a folder first, lest it shows when the newer one is gone; and last, in
  // case the newer one was just moved there.
  for (const std::string& file : {beside, path, beside}) {
    if (unlink(file.c_str()) == 0) continue;
    // Linux says EISDIR, POSIX EPERM, when it is a folder.
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR || IsFolder(file)) continue;
    return ErrnoStatus("deleting " + file, error);
  }
  for (std::string folder = ParentOf(path); folder.size() > root_.size();
       folder = ParentOf(folder)) {
    if (rmdir(folder.c_str()) != 0) break;
  }
  return OkStatus();
}

Result<ObjectList> FilesystemObjectStore::List(std::string_view prefix,
                                               std::string_view start_after, int limit) {
  LDNN_RETURN_IF_ERROR(ValidateListLimit(limit));
  return ListFolder(root_, prefix, start_after, limit);
}

}  // namespace lambdadnn
