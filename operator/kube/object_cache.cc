// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/object_cache.h"

#include <utility>

#include "common/base/text.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

bool IsOlder(const Json& candidate, const Json& known) {
  if (UidOf(candidate) != UidOf(known)) return false;
  const auto a = ParseInteger(ResourceVersionOf(candidate));
  const auto b = ParseInteger(ResourceVersionOf(known));
  return a.has_value() && b.has_value() && *a < *b;
}

bool IsSameVersion(const Json& a, const Json& b) {
  return UidOf(a) == UidOf(b) && ResourceVersionOf(a) == ResourceVersionOf(b);
}

// managedFields is most of an object that is patched often, and no reader here needs it.
std::shared_ptr<const Json> Kept(Json object) {
  const auto metadata = object.find("metadata");
  if (metadata != object.end() && metadata->is_object()) metadata->erase("managedFields");
  return std::make_shared<const Json>(std::move(object));
}

}  // namespace

bool ObjectCache::Put(Json object) {
  const std::lock_guard lock(mutex_);
  if (buried_.contains(UidOf(object))) return false;
  std::shared_ptr<const Json>& known = objects_[NameOf(object)];
  if (known != nullptr && (IsOlder(object, *known) || IsSameVersion(object, *known))) return false;
  known = Kept(std::move(object));
  Note(NameOf(*known));
  return true;
}

void ObjectCache::Note(const ObjectName& name) {
  ++change_count_;
  changes_.push_back(name);
  if (changes_.size() > kRememberedChanges) changes_.pop_front();
}

std::optional<std::vector<ObjectName>> ObjectCache::ChangesSince(uint64_t* cursor) const {
  const std::lock_guard lock(mutex_);
  const uint64_t before = std::exchange(*cursor, change_count_);
  if (before == 0 || change_count_ - before > changes_.size()) return std::nullopt;
  const auto first = changes_.end() - static_cast<std::ptrdiff_t>(change_count_ - before);
  return std::vector<ObjectName>(first, changes_.end());
}

void ObjectCache::Bury(const std::string& uid) {
  if (uid.empty() || !buried_.insert(uid).second) return;
  burials_.push_back(uid);
  while (burials_.size() > kRememberedDeletions) {
    buried_.erase(burials_.front());
    burials_.pop_front();
  }
}

bool ObjectCache::Remove(const Json& object) {
  const std::lock_guard lock(mutex_);
  Bury(UidOf(object));
  const auto found = objects_.find(NameOf(object));
  if (found == objects_.end() || UidOf(*found->second) != UidOf(object)) return false;
  Note(found->first);
  objects_.erase(found);
  return true;
}

void ObjectCache::Remove(const ObjectName& name, const std::string& uid) {
  const std::lock_guard lock(mutex_);
  Bury(uid);
  const auto found = objects_.find(name);
  if (found == objects_.end() || UidOf(*found->second) != uid) return;
  Note(found->first);
  objects_.erase(found);
}

std::shared_ptr<const Json> ObjectCache::Get(const ObjectName& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(name);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<const Json>> ObjectCache::All() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const Json>> all;
  all.reserve(objects_.size());
  for (const auto& [name, object] : objects_) all.push_back(object);
  return all;
}

std::vector<ObjectName> ObjectCache::Names() const {
  const std::lock_guard lock(mutex_);
  std::vector<ObjectName> names;
  names.reserve(objects_.size());
  for (const auto& [name, object] : objects_) names.push_back(name);
  return names;
}

size_t ObjectCache::size() const {
  const std::lock_guard lock(mutex_);
  return objects_.size();
}

std::vector<ObjectName> ObjectCache::Replace(const std::string& namespace_name,
                                             const std::string& version,
                                             std::vector<Json> objects) {
  const auto listed_at = ParseInteger(version);
  const std::lock_guard lock(mutex_);
  std::vector<ObjectName> changed;
  std::set<ObjectName> listed;
  for (Json& object : objects) {
    const ObjectName name = NameOf(object);
    listed.insert(name);
    if (buried_.contains(UidOf(object))) continue;
    std::shared_ptr<const Json>& known = objects_[name];
    if (known != nullptr) {
      if (IsOlder(object, *known) || IsSameVersion(object, *known)) continue;
      if (UidOf(object) != UidOf(*known)) Bury(UidOf(*known));
    }
    known = Kept(std::move(object));
    changed.push_back(name);
  }
  std::erase_if(objects_, [&](const auto& entry) {
    const bool ours = namespace_name.empty() || entry.first.namespace_name == namespace_name;
    if (!ours || listed.contains(entry.first)) return false;
    const auto written_at = ParseInteger(ResourceVersionOf(*entry.second));
    if (listed_at && written_at && *written_at > *listed_at) return false;
    Bury(UidOf(*entry.second));
    changed.push_back(entry.first);
    return true;
  });
  for (const ObjectName& name : changed) Note(name);
  return changed;
}

}  // namespace lambdadnn
