// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/job_cache.h"

#include <set>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

bool IsOlder(const Json& candidate, const Json& known) {
  if (UidOf(candidate) != UidOf(known)) return false;
  const auto a = ParseInteger(ResourceVersionOf(candidate));
  const auto b = ParseInteger(ResourceVersionOf(known));
  return a.has_value() && b.has_value() && *a < *b;
}

}  // namespace

std::string UidOf(const Json& object) { return MetadataText(object, "uid"); }
std::string ResourceVersionOf(const Json& object) {
  return MetadataText(object, "resourceVersion");
}

bool JobCache::Put(Json object) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Json>& known = objects_[NameOf(object)];
  if (known != nullptr) {
    if (IsOlder(object, *known)) return false;
    if (ResourceVersionOf(object) == ResourceVersionOf(*known)) return false;
  }
  known = std::make_shared<const Json>(std::move(object));
  return true;
}

void JobCache::Remove(const Json& object) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(NameOf(object));
  if (found != objects_.end() && UidOf(*found->second) == UidOf(object)) objects_.erase(found);
}

void JobCache::Remove(const ObjectName& name) {
  const std::lock_guard lock(mutex_);
  objects_.erase(name);
}

std::shared_ptr<const Json> JobCache::Get(const ObjectName& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(name);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<ObjectName> JobCache::Replace(std::vector<Json> objects) {
  const std::lock_guard lock(mutex_);
  std::set<ObjectName> names;
  for (const auto& [name, object] : objects_) names.insert(name);
  std::map<ObjectName, std::shared_ptr<const Json>> next;
  for (Json& object : objects) {
    const ObjectName name = NameOf(object);
    names.insert(name);
    const auto known = objects_.find(name);
    const bool keep =
        known != objects_.end() && (IsOlder(object, *known->second) ||
                                    ResourceVersionOf(object) == ResourceVersionOf(*known->second));
    next.emplace(name, keep ? known->second : std::make_shared<const Json>(std::move(object)));
  }
  objects_ = std::move(next);
  return {names.begin(), names.end()};
}

}  // namespace lambdadnn
