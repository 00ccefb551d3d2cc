// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_disk.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "common/objectstore/filesystem_errors.h"

namespace lambdadnn::simulation {

SimDisk::SimDisk(Random& random) : random_(random), root_(std::make_shared<Node>()) {
  root_->is_folder = true;
}

void SimDisk::CutPowerAt(int64_t change, std::function<void()> on_cut) {
  changes_until_cut_ = change;
  on_cut_ = std::move(on_cut);
}

bool SimDisk::MayChange() {
  if (!has_power_) return false;
  if (changes_until_cut_ == 0) return true;
  if (--changes_until_cut_ > 0) return true;
  has_power_ = false;
  std::exchange(on_cut_, nullptr)();
  return false;
}

void SimDisk::Spoil(Node& file) {
  if (file.synced || random_.Uniform() < 0.25) return;
  ++lost_;
  const size_t kept = file.content.empty() ? 0 : random_.Below(file.content.size());
  if (random_.Uniform() < 0.5) {
    file.content.resize(random_.Uniform() < 0.5 ? 0 : kept);
  } else {
    std::fill(file.content.begin() + static_cast<std::ptrdiff_t>(kept), file.content.end(),
              std::byte{0});
  }
}

void SimDisk::Restart(Node& node) {
  if (!node.is_folder) {
    Spoil(node);
    node.synced = true;
    return;
  }
  std::set<std::string> undone;
  for (const Change& change : node.news) {
    const bool builds_on_undone = std::any_of(
        change.begin(), change.end(), [&](const auto& one) { return undone.contains(one.first); });
    if (!builds_on_undone && random_.Uniform() < 0.5) {
      Apply(change, &node.durable);
      continue;
    }
    ++lost_;
    for (const auto& [name, ignored] : change) undone.insert(name);
  }
  node.news.clear();
  node.names = node.durable;
  for (const auto& [name, child] : node.names) Restart(*child);
}

void SimDisk::Restart() {
  changes_until_cut_ = 0;
  on_cut_ = nullptr;
  Restart(*root_);
  has_power_ = true;
}

void SimDisk::Apply(const Change& change, Names* names) {
  for (const auto& [name, node] : change) {
    if (node == nullptr) {
      names->erase(name);
    } else {
      (*names)[name] = node;
    }
  }
}

void SimDisk::Make(Node& folder, Change change) {
  Apply(change, &folder.names);
  folder.news.push_back(std::move(change));
}

int SimDisk::Walk(std::string_view path, Place* place) {
  if (!has_power_) return EIO;
  while (path.ends_with('/')) path.remove_suffix(1);
  Node* folder = root_.get();
  for (;;) {
    while (path.starts_with('/')) path.remove_prefix(1);
    const size_t slash = path.find('/');
    if (slash == std::string_view::npos) break;
    const auto found = folder->names.find(path.substr(0, slash));
    if (found == folder->names.end()) return ENOENT;
    if (!found->second->is_folder) return ENOTDIR;
    folder = found->second.get();
    path.remove_prefix(slash + 1);
  }
  *place = {folder, path};
  return 0;
}

int SimDisk::Find(std::string_view path, std::shared_ptr<Node>* node) {
  Place place;
  if (const int error = Walk(path, &place); error != 0) return error;
  if (place.name.empty()) {
    *node = root_;
    return 0;
  }
  const auto found = place.folder->names.find(place.name);
  if (found == place.folder->names.end()) return ENOENT;
  *node = found->second;
  return 0;
}

Result<std::string> SimDisk::WriteNew(const std::string& folder, std::span<const ByteView> parts,
                                      bool sync) {
  std::shared_ptr<Node> parent;
  int error = Find(folder, &parent);
  if (error == 0 && !parent->is_folder) error = ENOTDIR;
  if (error == 0 && !MayChange()) error = EIO;
  if (error != 0) return ErrnoStatus("creating a temporary file in " + folder, error);
  auto file = std::make_shared<Node>();
  for (const ByteView part : parts) {
    file->content.insert(file->content.end(), part.begin(), part.end());
  }
  std::string name = "t" + std::to_string(++files_made_);
  Make(*parent, {{name, file}});
  const std::string path = folder + "/" + name;
  if (!sync) return path;
  if (!MayChange()) return ErrnoStatus("syncing " + path, EIO);
  file->synced = true;
  return path;
}

int SimDisk::Append(const std::string& path, ByteView bytes, bool sync) {
  std::shared_ptr<Node> node;
  if (const int error = Find(path, &node); error != 0) return error;
  if (node->is_folder) return EISDIR;
  if (!MayChange()) return EIO;
  node->content.insert(node->content.end(), bytes.begin(), bytes.end());
  node->synced = false;
  if (!sync) return 0;
  if (!MayChange()) return EIO;
  node->synced = true;
  return 0;
}

int SimDisk::Read(const std::string& path, uint64_t offset, uint64_t length, Bytes* bytes,
                  FileInfo* info) {
  std::shared_ptr<Node> node;
  if (const int error = Find(path, &node); error != 0) return error;
  *info = {node->is_folder, !node->is_folder, node->content.size(), 0};
  bytes->clear();
  if (node->is_folder || offset >= info->size) return 0;
  const auto begin = node->content.begin() + static_cast<std::ptrdiff_t>(offset);
  const uint64_t size = std::min(length, info->size - offset);
  bytes->assign(begin, begin + static_cast<std::ptrdiff_t>(size));
  return 0;
}

int SimDisk::Look(const std::string& path, FileInfo* info) {
  std::shared_ptr<Node> node;
  if (const int error = Find(path, &node); error != 0) return error;
  *info = {node->is_folder, !node->is_folder, node->content.size(), 0};
  return 0;
}

int SimDisk::Rename(const std::string& from, const std::string& to) {
  std::shared_ptr<Node> node;
  std::shared_ptr<Node> replaced;
  Place source;
  Place target;
  if (const int error = Find(from, &node); error != 0) return error;
  (void)Walk(from, &source);
  if (const int error = Walk(to, &target); error != 0) return error;
  (void)Find(to, &replaced);
  if (replaced == node) return 0;
  if (replaced != nullptr && replaced->is_folder && !node->is_folder) return EISDIR;
  if (!MayChange()) return EIO;
  const std::string old_name(source.name);
  const std::string new_name(target.name);
  if (source.folder == target.folder) {
    Make(*source.folder, {{old_name, nullptr}, {new_name, node}});
    return 0;
  }
  Make(*target.folder, {{new_name, node}});
  Make(*source.folder, {{old_name, nullptr}});
  return 0;
}

int SimDisk::Link(const std::string& from, const std::string& to) {
  std::shared_ptr<Node> node;
  Place target;
  if (const int error = Find(from, &node); error != 0) return error;
  if (const int error = Walk(to, &target); error != 0) return error;
  if (target.folder->names.contains(target.name)) return EEXIST;
  if (!MayChange()) return EIO;
  Make(*target.folder, {{std::string(target.name), node}});
  return 0;
}

int SimDisk::Unlink(const std::string& path) {
  std::shared_ptr<Node> node;
  Place place;
  if (const int error = Find(path, &node); error != 0) return error;
  if (node->is_folder) return EISDIR;
  if (!MayChange()) return EIO;
  (void)Walk(path, &place);
  Make(*place.folder, {{std::string(place.name), nullptr}});
  return 0;
}

int SimDisk::MakeFolder(const std::string& path) {
  Place place;
  if (const int error = Walk(path, &place); error != 0) return error;
  if (place.name.empty() || place.folder->names.contains(place.name)) return EEXIST;
  if (!MayChange()) return EIO;
  auto folder = std::make_shared<Node>();
  folder->is_folder = true;
  Make(*place.folder, {{std::string(place.name), std::move(folder)}});
  return 0;
}

int SimDisk::RemoveFolder(const std::string& path) {
  std::shared_ptr<Node> node;
  Place place;
  if (const int error = Find(path, &node); error != 0) return error;
  if (!node->is_folder) return ENOTDIR;
  if (node == root_) return EBUSY;
  if (!node->names.empty()) return ENOTEMPTY;
  if (!MayChange()) return EIO;
  (void)Walk(path, &place);
  Make(*place.folder, {{std::string(place.name), nullptr}});
  return 0;
}

int SimDisk::SyncFolder(const std::string& path) {
  std::shared_ptr<Node> node;
  if (const int error = Find(path, &node); error != 0) return error;
  if (!node->is_folder) return ENOTDIR;
  if (!MayChange()) return EIO;
  node->durable = node->names;
  node->news.clear();
  return 0;
}

int SimDisk::List(const std::string& path, std::vector<FolderItem>* items) {
  std::shared_ptr<Node> node;
  if (const int error = Find(path, &node); error != 0) return error;
  if (!node->is_folder) return ENOTDIR;
  for (const auto& [name, child] : node->names) {
    items->push_back({name, {child->is_folder, !child->is_folder, child->content.size(), 0}});
  }
  return 0;
}

}  // namespace lambdadnn::simulation
