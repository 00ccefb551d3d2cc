// SPDX-License-Identifier: Apache-2.0
// Objects as files below a folder (filesystem_layout.h), shared by all processes that open it.
//
// A Put writes a temporary file on the same file system, syncs it (unless ephemeral) and renames it
// into place, or links it where the object must be new; so readers see whole objects only, and a
// killed writer leaves nothing but a temporary file, which a later writer removes. Folders come and
// go with their objects. An ephemeral Put wakes the processes of this machine that wait for its key
// (base/wakeup_row.h), so that they need not poll. Thread-safe. One caveat: two processes that at
// the same moment create an object and the first object "below" it ("a" and "a/b") may lose one of
// the two.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "common/base/wakeup_row.h"
#include "common/objectstore/file_system.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {

class FilesystemObjectStore final : public ObjectStore {
 public:
  // `root`: an absolute path; it and its parents are made by the first Put.
  explicit FilesystemObjectStore(std::string root);
  // On other files than the machine's, which outlive this; null = the machine's. No wake-ups there.
  FilesystemObjectStore(std::string root, FileSystem* files);

  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override;
  Status PutPieces(std::string_view key, uint64_t size, const PieceReader& read) override;
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override;
  Result<ObjectInfo> Head(std::string_view key) override;
  Status Delete(std::string_view key) override;
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override;
  std::unique_ptr<ArrivalWatch> Watch(std::string_view key) override;
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return "file://" + root_; }

 private:
  Result<std::string> WriteTemporary(std::span<const ByteView> parts, const PutOptions& options);
  // Puts the temporary file, which is complete, in its place.
  Status Finish(const std::string& temporary, std::string_view key, const std::string& path,
                const PutOptions& options);
  void RemoveOldTemporaries(const std::string& newest);
  Status Publish(const std::string& temporary, std::string_view key, const std::string& path,
                 bool if_absent);
  Status MakeFolders(const std::string& path);
  Status MoveAsideForFolder(const std::string& path);
  Status SyncFolders(const std::string& path) const;
  bool IsFolder(const std::string& path) const;
  bool Exists(const std::string& path) const;
  Result<FileInfo> ReadObject(const std::string& path, ByteRange range, Bytes* bytes) const;
  // Null while there is no folder for temporary files, or where the file cannot be mapped.
  WakeupRow* Wakeups();

  const std::string root_;
  PosixFileSystem posix_;
  FileSystem& files_;
  const bool has_wakeups_;
  // Exclusive while a file makes way for a folder of the same name, shared while one is published.
  std::shared_mutex shape_mutex_;
  std::atomic<bool> cleaned_{false};
  std::mutex wakeups_mutex_;
  std::unique_ptr<WakeupRow> wakeups_;  // once made, it stays
};

}  // namespace lambdadnn
