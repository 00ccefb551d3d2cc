// SPDX-License-Identifier: Apache-2.0
// The file operations of FilesystemObjectStore as an interface: POSIX's, and in the simulator a
// disk that loses unsynced data when its host loses power. Paths are absolute. Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/status.h"

namespace lambdadnn {

struct FileInfo {
  bool is_folder = false;
  bool is_file = false;
  uint64_t size = 0;
  int64_t modified_seconds = 0;  // by the clock of the machine that has the disk
};

struct FolderItem {
  std::string name;
  FileInfo info;
};

// Where nothing else is said, 0 or an errno is returned.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Makes a file with a name of its own in `folder`, which holds `parts` and may be read by all;
  // with `sync` its content survives a power cut from then on (its name does not: SyncFolder).
  // Returns its path. Nothing is left of a failure, kNotFound: there is no such folder.
  virtual Result<std::string> WriteNew(const std::string& folder, std::span<const ByteView> parts,
                                       bool sync) = 0;
  // Adds to the end of a file that WriteNew made; with `sync` all of its content survives a power
  // cut from then on.
  virtual int Append(const std::string& path, ByteView bytes, bool sync) = 0;
  // What the path leads to, and of a file the bytes from `offset` on, at most `length`.
  virtual int Read(const std::string& path, uint64_t offset, uint64_t length, Bytes* bytes,
                   FileInfo* info) = 0;
  virtual int Look(const std::string& path, FileInfo* info) = 0;
  // Replaces a file at `to`.
  virtual int Rename(const std::string& from, const std::string& to) = 0;
  // A second name; EEXIST when it is taken.
  virtual int Link(const std::string& from, const std::string& to) = 0;
  virtual int Unlink(const std::string& path) = 0;
  virtual int MakeFolder(const std::string& path) = 0;
  virtual int RemoveFolder(const std::string& path) = 0;
  // The names in the folder survive a power cut as they are now.
  virtual int SyncFolder(const std::string& path) = 0;
  // Without "." and "..", in no order; an item that vanishes meanwhile is left out.
  virtual int List(const std::string& path, std::vector<FolderItem>* items) = 0;
};

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::string> WriteNew(const std::string& folder, std::span<const ByteView> parts,
                               bool sync) override;
  int Append(const std::string& path, ByteView bytes, bool sync) override;
  int Read(const std::string& path, uint64_t offset, uint64_t length, Bytes* bytes,
           FileInfo* info) override;
  int Look(const std::string& path, FileInfo* info) override;
  int Rename(const std::string& from, const std::string& to) override;
  int Link(const std::string& from, const std::string& to) override;
  int Unlink(const std::string& path) override;
  int MakeFolder(const std::string& path) override;
  int RemoveFolder(const std::string& path) override;
  int SyncFolder(const std::string& path) override;
  int List(const std::string& path, std::vector<FolderItem>* items) override;
};

}  // namespace lambdadnn
