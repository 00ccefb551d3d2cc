// SPDX-License-Identifier: Apache-2.0
// The newest version of every object of one kind that this process has seen, fed by an informer and
// by the process's own writes. Never goes back: an older resourceVersion of the same object does
// not replace a newer one (both are whole numbers on every API server in use; otherwise the later
// call wins), and an object that was seen deleted does not come again with a late answer.
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/kube_client.h"

namespace lambdadnn {

class ObjectCache {
 public:
  // Returns whether the object is newer.
  bool Put(Json object);
  // The object was deleted. Returns whether it was there.
  bool Remove(const Json& object);
  // The server says that there is no such object any more; another one of that name stays.
  void Remove(const ObjectName& name, const std::string& uid);
  // Null when there is none. The same version is the same pointer.
  std::shared_ptr<const Json> Get(const ObjectName& name) const;
  std::vector<std::shared_ptr<const Json>> All() const;
  std::vector<ObjectName> Names() const;
  size_t size() const;
  // Names of objects that are new, changed or gone since `*cursor` (0 = the first call), which is
  // moved on. nullopt: too much has changed since, or it is the first call; read all Names().
  std::optional<std::vector<ObjectName>> ChangesSince(uint64_t* cursor) const;
  // After a list of one namespace (empty = all), as of `version`: what is missing from it is gone,
  // unless it was written since. Returns the names of what is new, changed or gone.
  std::vector<ObjectName> Replace(const std::string& namespace_name, const std::string& version,
                                  std::vector<Json> objects);

  // Deletions remembered, so that a late answer does not restore a deleted object.
  static constexpr size_t kRememberedDeletions = 4096;
  // Changes remembered for callers of ChangesSince.
  static constexpr size_t kRememberedChanges = 4096;

 private:
  void Bury(const std::string& uid);
  void Note(const ObjectName& name);

  mutable std::mutex mutex_;
  std::map<ObjectName, std::shared_ptr<const Json>> objects_;
  std::set<std::string> buried_;
  std::deque<std::string> burials_;  // oldest first
  std::deque<ObjectName> changes_;   // the newest ones, oldest first
  uint64_t change_count_ = 1;        // of all; 1 = none yet
};

}  // namespace lambdadnn
