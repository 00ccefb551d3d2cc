// SPDX-License-Identifier: Apache-2.0
// Objects as files below a folder (filesystem_layout.h), shared by all processes that open it.
//
// A Put writes a temporary file on the same file system, syncs it (unless ephemeral) and renames it
// into place, or links it where the object must be new; so readers see whole objects only, and a
// killed writer leaves nothing but a temporary file, which a later writer removes. Folders come and
// go with their objects. Thread-safe. One caveat: two processes that at the same moment create an
// object and the first object "below" it ("a" and "a/b") may lose one of the two.
#pragma once

#include <atomic>
#include <shared_mutex>
#include <string>

#include "common/objectstore/object_store.h"

namespace lambdadnn {

class FilesystemObjectStore final : public ObjectStore {
 public:
  // `root`: an absolute path; it and its parents are made by the first Put.
  explicit FilesystemObjectStore(std::string root);

  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override;
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override;
  Result<ObjectInfo> Head(std::string_view key) override;
  Status Delete(std::string_view key) override;
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override;
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return "file://" + root_; }

 private:
  Result<std::string> WriteTemporary(std::span<const ByteView> parts, const PutOptions& options);
  void RemoveOldTemporaries(const std::string& newest);
  Status Publish(const std::string& temporary, std::string_view key, const std::string& path,
                 bool if_absent);
  Status MakeFolders(const std::string& path);
  Status MoveAsideForFolder(const std::string& path);
  Status SyncFolders(const std::string& path) const;

  const std::string root_;
  // Exclusive while a file makes way for a folder of the same name, shared while one is published.
  std::shared_mutex shape_mutex_;
  std::atomic<bool> cleaned_{false};
};

}  // namespace lambdadnn
