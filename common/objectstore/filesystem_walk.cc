// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/filesystem_walk.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "common/objectstore/filesystem_errors.h"
#include "common/objectstore/filesystem_layout.h"

namespace lambdadnn {
namespace {

struct Entry {
  std::string key;  // of a file; what all keys of a folder begin with
  std::string name;
  uint64_t size = 0;
  bool is_folder = false;
  bool beside_folder = false;
  bool continued = false;
};

class Walk {
 public:
  Walk(FileSystem& files, std::string_view prefix, std::string_view start_after, size_t limit)
      : files_(files), prefix_(prefix), start_after_(start_after), limit_(limit) {}

  Status Visit(const std::string& path, const std::string& key_prefix);
  std::vector<ObjectInfo>& found() { return found_; }

 private:
  bool MayHoldMatches(const std::string& key_prefix) const {
    if (!key_prefix.starts_with(prefix_) && !prefix_.starts_with(key_prefix)) return false;
    return key_prefix >= start_after_ || start_after_.starts_with(key_prefix);
  }
  bool Matches(const std::string& key) const {
    return key.starts_with(prefix_) && key > start_after_;
  }
  Result<std::vector<Entry>> ReadFolder(const std::string& path, const std::string& key_prefix);

  FileSystem& files_;
  const std::string_view prefix_;
  const std::string_view start_after_;
  size_t limit_;
  std::vector<ObjectInfo> found_;
};

Result<std::vector<Entry>> Walk::ReadFolder(const std::string& path,
                                            const std::string& key_prefix) {
  std::vector<Entry> entries;
  std::vector<FolderItem> items;
  const int error = files_.List(path, &items);
  if (error == ENOENT || error == ENOTDIR) return entries;
  if (error != 0) return ErrnoStatus("listing the folder " + path, error);
  for (const FolderItem& item : items) {
    std::optional<DecodedName> decoded = DecodeName(item.name);
    if (!decoded) continue;
    Entry entry{.key = key_prefix + decoded->text,
                .name = item.name,
                .size = item.info.size,
                .is_folder = item.info.is_folder,
                .beside_folder = decoded->beside_folder,
                .continued = decoded->continued};
    if (entry.is_folder && entry.beside_folder) continue;
    if (!entry.is_folder && (entry.continued || !item.info.is_file)) continue;
    if (entry.is_folder && !entry.continued) entry.key += '/';
    if (entry.is_folder ? MayHoldMatches(entry.key) : Matches(entry.key)) {
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

Status Walk::Visit(const std::string& path, const std::string& key_prefix) {
  LDNN_ASSIGN_OR_RETURN(std::vector<Entry> entries, ReadFolder(path, key_prefix));
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : a.beside_folder < b.beside_folder;
  });
  // The keys of a folder are neighbours, so that the walk may stop at the limit. Only those of a
  // continued segment may lie between others.
  const bool interleaved = std::any_of(entries.begin(), entries.end(),
                                       [](const Entry& entry) { return entry.continued; });
  const size_t limit = limit_;
  const size_t begin = found_.size();
  if (interleaved) limit_ = std::numeric_limits<size_t>::max();
  for (const Entry& entry : entries) {
    if (found_.size() >= limit_) break;
    if (entry.is_folder) {
      LDNN_RETURN_IF_ERROR(Visit(path + "/" + entry.name, entry.key));
    } else if (found_.empty() || found_.back().key != entry.key) {
      found_.push_back({entry.key, entry.size});
    }
  }
  if (interleaved) {
    limit_ = limit;
    std::sort(found_.begin() + static_cast<std::ptrdiff_t>(begin), found_.end(),
              [](const ObjectInfo& a, const ObjectInfo& b) { return a.key < b.key; });
  }
  return OkStatus();
}

}  // namespace

Result<ObjectList> ListFolder(FileSystem& files, const std::string& root, std::string_view prefix,
                              std::string_view start_after, int limit) {
  const size_t wanted = static_cast<size_t>(limit);
  Walk walk(files, prefix, start_after, wanted + 1);  // one more tells whether there is more
  LDNN_RETURN_IF_ERROR(walk.Visit(root, ""));
  ObjectList list;
  list.objects = std::move(walk.found());
  if (list.objects.size() > wanted) {
    list.objects.resize(wanted);
    list.next_start_after = list.objects.back().key;
  }
  return list;
}

}  // namespace lambdadnn
