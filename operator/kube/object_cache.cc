// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/object_cache.h"

#include <utility>

#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

bool IsOlder(const ObjectVersion& candidate, const ObjectVersion& known) {
  if (candidate.uid != known.uid) return false;
  const auto a = ParseInteger(candidate.resource_version);
  const auto b = ParseInteger(known.resource_version);
  return a.has_value() && b.has_value() && *a < *b;
}

}  // namespace

ObjectVersion ObjectVersionOf(const Json& object) {
  return {UidOf(object), ResourceVersionOf(object)};
}

ObjectCache::Entry ObjectCache::MakeEntry(Json object) const {
  // managedFields is most of an object that is patched often, and no reader here needs it.
  const auto metadata = object.find("metadata");
  if (metadata != object.end() && metadata->is_object()) metadata->erase("managedFields");
  Entry entry{ObjectVersionOf(object), nullptr, nullptr};
  if (storage_ == Storage::kText) {
    std::string text = DumpJson(object);
    text.shrink_to_fit();  // it grew by doubling, and stays for long
    entry.text = std::make_shared<const std::string>(std::move(text));
  } else {
    entry.tree = std::make_shared<const Json>(std::move(object));
  }
  return entry;
}

std::shared_ptr<const Json> ObjectCache::TreeOf(const Entry& entry) {
  if (entry.text == nullptr) return entry.tree;
  return std::make_shared<const Json>(Json::parse(*entry.text));
}

bool ObjectCache::Put(Json object) { return PutNewer(std::move(object), false); }

bool ObjectCache::PutListed(Json object) { return PutNewer(std::move(object), true); }

bool ObjectCache::PutNewer(Json object, bool listed) {
  const ObjectName name = NameOf(object);
  const ObjectVersion version = ObjectVersionOf(object);
  const std::lock_guard lock(mutex_);
  if (buried_.contains(version.uid)) return false;
  if (const auto known = objects_.find(name); known != objects_.end()) {
    const ObjectVersion& before = known->second.version;
    if (IsOlder(version, before) || version == before) return false;
    if (listed && version.uid != before.uid) Bury(before.uid);
  }
  objects_.insert_or_assign(name, MakeEntry(std::move(object)));
  Note(name);
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
  if (found == objects_.end() || found->second.version.uid != UidOf(object)) return false;
  Note(found->first);
  objects_.erase(found);
  return true;
}

void ObjectCache::Remove(const ObjectName& name, const std::string& uid) {
  const std::lock_guard lock(mutex_);
  Bury(uid);
  const auto found = objects_.find(name);
  if (found == objects_.end() || found->second.version.uid != uid) return;
  Note(found->first);
  objects_.erase(found);
}

std::shared_ptr<const Json> ObjectCache::Get(const ObjectName& name) const {
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(name);
    if (found == objects_.end()) return nullptr;
    entry = found->second;
  }
  return TreeOf(entry);
}

std::optional<ObjectVersion> ObjectCache::VersionOf(const ObjectName& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(name);
  if (found == objects_.end()) return std::nullopt;
  return found->second.version;
}

bool ObjectCache::Contains(const ObjectName& name) const {
  const std::lock_guard lock(mutex_);
  return objects_.contains(name);
}

std::vector<std::shared_ptr<const Json>> ObjectCache::All() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const Json>> all;
  all.reserve(objects_.size());
  for (const auto& [name, entry] : objects_) all.push_back(TreeOf(entry));
  return all;
}

std::vector<ObjectName> ObjectCache::Names() const {
  const std::lock_guard lock(mutex_);
  std::vector<ObjectName> names;
  names.reserve(objects_.size());
  for (const auto& [name, entry] : objects_) names.push_back(name);
  return names;
}

size_t ObjectCache::size() const {
  const std::lock_guard lock(mutex_);
  return objects_.size();
}

std::vector<ObjectName> ObjectCache::RemoveUnlisted(const std::string& namespace_name,
                                                    const std::string& version,
                                                    const std::set<ObjectName>& listed) {
  const auto listed_at = ParseInteger(version);
  const std::lock_guard lock(mutex_);
  std::vector<ObjectName> gone;
  std::erase_if(objects_, [&](const auto& entry) {
    const bool ours = namespace_name.empty() || entry.first.namespace_name == namespace_name;
    if (!ours || listed.contains(entry.first)) return false;
    const auto written_at = ParseInteger(entry.second.version.resource_version);
    if (listed_at && written_at && *written_at > *listed_at) return false;
    Bury(entry.second.version.uid);
    gone.push_back(entry.first);
    return true;
  });
  for (const ObjectName& name : gone) Note(name);
  return gone;
}

}  // namespace lambdadnn
