// SPDX-License-Identifier: Apache-2.0
// A disk on virtual time for the production FilesystemObjectStore. What is written lies in the page
// cache and is seen by everybody at once; when the host loses power, only what was synced is sure
// to be there afterwards: of a file that was not, all, nothing, a beginning, or zeros may be left;
// and of the changes to a folder since it was synced, any. (A change is a creation, a removal, a
// replacement, or a renaming within the folder; those of one name are undone from the last one on.)
// Never waits.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/random.h"
#include "common/objectstore/file_system.h"

namespace lambdadnn::simulation {

class SimDisk final : public FileSystem {
 public:
  // `random` decides what a power cut leaves; it outlives the disk.
  explicit SimDisk(Random& random);

  // The power fails at the `change`-th change from now on (1 = the next), which does not happen any
  // more: until Restart every operation fails with EIO. `on_cut` is called then, once.
  void CutPowerAt(int64_t change, std::function<void()> on_cut);
  // Now.
  void CutPower() { has_power_ = false; }
  // The host is up again; what was in the page cache alone is gone, or not.
  void Restart();
  // Changes that a power cut undid, and files that it spoiled, so far.
  int64_t lost() const { return lost_; }

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

 private:
  struct Node;
  using Names = std::map<std::string, std::shared_ptr<Node>, std::less<>>;
  // What each name leads to from then on; null = nothing.
  using Change = std::vector<std::pair<std::string, std::shared_ptr<Node>>>;
  struct Node {
    bool is_folder = false;
    Bytes content;  // of a file
    bool synced = false;
    Names names;               // of a folder, as everybody sees it
    Names durable;             // as it was synced
    std::vector<Change> news;  // since then
  };
  // A folder and a name in it, whether or not there is such a name.
  struct Place {
    Node* folder = nullptr;
    std::string_view name;
  };

  // False: the power is off.
  bool MayChange();
  int Walk(std::string_view path, Place* place);
  int Find(std::string_view path, std::shared_ptr<Node>* node);
  static void Apply(const Change& change, Names* names);
  static void Make(Node& folder, Change change);
  void Restart(Node& node);
  void Spoil(Node& file);

  Random& random_;
  std::shared_ptr<Node> root_;
  bool has_power_ = true;
  int64_t changes_until_cut_ = 0;  // 0 = no appointment
  std::function<void()> on_cut_;
  int64_t files_made_ = 0;
  int64_t lost_ = 0;
};

}  // namespace lambdadnn::simulation
