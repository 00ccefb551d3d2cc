// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/filesystem_object_store.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "common/objectstore/filesystem_errors.h"
#include "common/objectstore/filesystem_layout.h"
#include "common/objectstore/filesystem_walk.h"

namespace lambdadnn {
namespace {

// A writer that is still alive has touched its temporary file more recently than this.
constexpr int64_t kAbandonedAfterSeconds = 3600;
// Each try loses a race against a Delete that removed the folder just made.
constexpr int kMaxPublishTries = 1000;

std::string BesideFolder(const std::string& path) {
  return path + std::string(kBesideFolderSuffix);
}

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

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

}  // namespace

FilesystemObjectStore::FilesystemObjectStore(std::string root)
    : FilesystemObjectStore(std::move(root), nullptr) {}

FilesystemObjectStore::FilesystemObjectStore(std::string root, FileSystem* files)
    : root_([&] {
        while (root.size() > 1 && root.ends_with('/')) root.pop_back();
        return std::move(root);
      }()),
      files_(files == nullptr ? posix_ : *files),
      has_wakeups_(files == nullptr) {
  LDNN_CHECK(root_.starts_with('/'), "a file store needs an absolute path, not " + root_);
}

Status FilesystemObjectStore::Put(std::string_view key, std::span<const ByteView> parts,
                                  const PutOptions& options) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const std::string path = root_ + "/" + KeyToPath(key);
  const std::string context = "writing " + path;
  Result<std::string> temporary = WriteTemporary(parts, options);
  if (!temporary.ok()) return temporary.status().WithContext(context);
  return Finish(*temporary, key, path, options);
}

Status FilesystemObjectStore::PutPieces(std::string_view key, uint64_t size,
                                        const PieceReader& read) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const std::string path = root_ + "/" + KeyToPath(key);
  const std::string context = "writing " + path;
  Result<std::string> temporary = WriteTemporary({}, {});
  if (!temporary.ok()) return temporary.status().WithContext(context);
  for (uint64_t offset = 0; offset < size; offset += kPieceBytes) {
    const uint64_t length = std::min(kPieceBytes, size - offset);
    const Result<Bytes> piece = ReadPiece(read, {offset, length});
    Status status = piece.status();
    const bool sync = offset + length == size;
    const int error = piece.ok() ? files_.Append(*temporary, *piece, sync) : 0;
    if (error != 0) status = ErrnoStatus(context, error);
    if (status.ok()) continue;
    files_.Unlink(*temporary);
    return status;
  }
  return Finish(*temporary, key, path, {});
}

Status FilesystemObjectStore::Finish(const std::string& temporary, std::string_view key,
                                     const std::string& path, const PutOptions& options) {
  const Status published = Publish(temporary, key, path, options.if_absent);
  // After a rename the name is gone; after a link or a failure it is not.
  files_.Unlink(temporary);
  if (!published.ok()) return published;
  if (options.ephemeral) {
    if (WakeupRow* const wakeups = Wakeups()) wakeups->Ring(NumberOf(key));
    return OkStatus();
  }
  return SyncFolders(path).WithContext("writing " + path);
}

Result<std::string> FilesystemObjectStore::WriteTemporary(std::span<const ByteView> parts,
                                                          const PutOptions& options) {
  const std::string folder = root_ + "/" + std::string(kTemporaryFolder);
  const bool sync = !options.ephemeral;
  Result<std::string> name = files_.WriteNew(folder, parts, sync);
  if (name.status().code() == StatusCode::kNotFound) {
    LDNN_RETURN_IF_ERROR(MakeFolders(folder + "/file"));
    name = files_.WriteNew(folder, parts, sync);
  }
  if (name.ok() && !cleaned_.exchange(true)) RemoveOldTemporaries(*name);
  return name;
}

// What a killed writer left. Ages are compared with a file just made, so no clock is needed and
// another machine's clock does no harm.
void FilesystemObjectStore::RemoveOldTemporaries(const std::string& newest) {
  const std::string folder = ParentOf(newest);
  FileInfo now;
  std::vector<FolderItem> items;
  if (files_.Look(newest, &now) != 0 || files_.List(folder, &items) != 0) return;
  for (const FolderItem& item : items) {
    if (item.name == kWakeupsFile || !item.info.is_file) continue;
    if (item.info.modified_seconds + kAbandonedAfterSeconds < now.modified_seconds) {
      files_.Unlink(folder + "/" + item.name);
    }
  }
}

bool FilesystemObjectStore::IsFolder(const std::string& path) const {
  FileInfo info;
  return files_.Look(path, &info) == 0 && info.is_folder;
}

bool FilesystemObjectStore::Exists(const std::string& path) const {
  FileInfo info;
  return files_.Look(path, &info) == 0;
}

Status FilesystemObjectStore::Publish(const std::string& temporary, std::string_view key,
                                      const std::string& path, bool if_absent) {
  const std::string beside = BesideFolder(path);
  const auto place = [&](const std::string& target) {
    return if_absent ? files_.Link(temporary, target) : files_.Rename(temporary, target);
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
        if (!if_absent) files_.Unlink(beside);
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
  if (!has_wakeups_) return nullptr;
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
    const int error = files_.MakeFolder(folder);
    if (error == 0) {
      // Folders inside the root are synced with the object; those above it only here.
      if (slash <= root_.size()) files_.SyncFolder(ParentOf(folder) + "/");
      continue;
    }
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
  int error = files_.Rename(path, BesideFolder(path));
  if (error != 0 && error != ENOENT) return ErrnoStatus("moving the object " + path, error);
  error = files_.MakeFolder(path);
  if (error != 0 && error != EEXIST && error != ENOENT) {
    return ErrnoStatus("making the folder " + path, error);
  }
  return OkStatus();
}

Status FilesystemObjectStore::SyncFolders(const std::string& path) const {
  for (std::string folder = ParentOf(path); folder.size() >= root_.size();
       folder = ParentOf(folder)) {
    const int error = files_.SyncFolder(folder);
    // A folder that is gone was deleted together with the object.
    if (error != 0 && error != ENOENT && error != ENOTDIR) {
      return ErrnoStatus("syncing the folder " + folder, error);
    }
    if (folder.empty()) break;
  }
  return OkStatus();
}

// Of the object's file, wherever it lies.
Result<FileInfo> FilesystemObjectStore::ReadObject(const std::string& path, ByteRange range,
                                                   Bytes* bytes) const {
  for (const std::string& candidate : {path, BesideFolder(path)}) {
    FileInfo info;
    const int error = files_.Read(candidate, range.offset, range.length, bytes, &info);
    if (error == ENOENT || error == ENOTDIR) continue;
    if (error != 0) return ErrnoStatus("reading " + candidate, error);
    if (info.is_file) return info;
  }
  if (!Exists(root_)) {
    return NotFoundError("there is no object " + path + ": the store's folder " + root_ +
                         " does not exist");
  }
  return NotFoundError("there is no object " + path);
}

Result<Bytes> FilesystemObjectStore::Get(std::string_view key, std::optional<ByteRange> range) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const std::string path = root_ + "/" + KeyToPath(key);
  const ByteRange wanted = range.value_or(ByteRange{0, std::numeric_limits<uint64_t>::max()});
  Bytes bytes;
  LDNN_ASSIGN_OR_RETURN(const FileInfo info, ReadObject(path, wanted, &bytes));
  LDNN_ASSIGN_OR_RETURN(const ByteRange part, ClipRange(key, wanted, info.size));
  if (bytes.size() != part.length) {
    return DataLossError("reading " + path + ": the file became shorter meanwhile");
  }
  return bytes;
}

Result<ObjectInfo> FilesystemObjectStore::Head(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  Bytes none;
  LDNN_ASSIGN_OR_RETURN(const FileInfo info, ReadObject(root_ + "/" + KeyToPath(key), {}, &none));
  return ObjectInfo{std::string(key), info.size};
}

Status FilesystemObjectStore::Delete(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const std::string path = root_ + "/" + KeyToPath(key);
  const std::string beside = BesideFolder(path);
  // The older file beside a folder first, so that it does not reappear when the newer one is
  // deleted; and again last, in case the newer one was just moved there.
  for (const std::string& file : {beside, path, beside}) {
    // Linux says EISDIR, POSIX EPERM, when it is a folder.
    const int error = files_.Unlink(file);
    if (error == 0 || error == ENOENT || error == ENOTDIR || IsFolder(file)) continue;
    return ErrnoStatus("deleting " + file, error);
  }
  for (std::string folder = ParentOf(path); folder.size() > root_.size();
       folder = ParentOf(folder)) {
    if (files_.RemoveFolder(folder) != 0) break;
  }
  return OkStatus();
}

Result<ObjectList> FilesystemObjectStore::List(std::string_view prefix,
                                               std::string_view start_after, int limit) {
  LDNN_RETURN_IF_ERROR(ValidateListLimit(limit));
  return ListFolder(files_, root_, prefix, start_after, limit);
}

}  // namespace lambdadnn
