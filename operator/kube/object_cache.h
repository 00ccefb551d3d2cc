// SPDX-License-Identifier: Apache-2.0
// The newest version of every object of one kind that this process has seen, fed by an informer and
// by the process's own writes. Never goes back: an older resourceVersion of the same object does
// not replace a newer one (both are whole numbers on every API server in use; otherwise the later
// call wins), and an object that was seen deleted does not come again with a late answer.
//
// Objects of which there may be many and each of which is rarely looked at are kept as text, a
// sixth of what their trees take, and parsed by each Get. Thread-safe.
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

// One version of one object.
struct ObjectVersion {
  std::string uid;
  std::string resource_version;
  friend bool operator==(const ObjectVersion&, const ObjectVersion&) = default;
};
ObjectVersion ObjectVersionOf(const Json& object);

class ObjectCache {
 public:
  enum class Storage { kTree, kText };
  explicit ObjectCache(Storage storage = Storage::kTree) : storage_(storage) {}

  // Returns whether the object is newer.
  bool Put(Json object);
  // The object was deleted. Returns whether it was there.
  bool Remove(const Json& object);
  // The server says that there is no such object any more; another one of that name stays.
  void Remove(const ObjectName& name, const std::string& uid);
  // Null when there is none. Of trees the same version is the same pointer.
  std::shared_ptr<const Json> Get(const ObjectName& name) const;
  // What Get would give, without parsing; nullopt when there is none.
  std::optional<ObjectVersion> VersionOf(const ObjectName& name) const;
  bool Contains(const ObjectName& name) const;
  std::vector<std::shared_ptr<const Json>> All() const;
  std::vector<ObjectName> Names() const;
  size_t size() const;
  // Names of objects that are new, changed or gone since `*cursor` (0 = the first call), which is
  // moved on. nullopt: too much has changed since, or it is the first call; read all Names().
  std::optional<std::vector<ObjectName>> ChangesSince(uint64_t* cursor) const;
  // An object of a list, which may be older than what was written since. Returns whether it is
  // newer than the one that is there.
  bool PutListed(Json object);
  // After a list of one namespace (empty = all), as of `version`: what is missing from it is gone,
  // unless it was written since. Returns the names of what is gone.
  std::vector<ObjectName> RemoveUnlisted(const std::string& namespace_name,
                                         const std::string& version,
                                         const std::set<ObjectName>& listed);

  // Deletions remembered, so that a late answer does not restore a deleted object.
  static constexpr size_t kRememberedDeletions = 4096;
  // Changes remembered for callers of ChangesSince.
  static constexpr size_t kRememberedChanges = 4096;

 private:
  struct Entry {
    ObjectVersion version;
    std::shared_ptr<const Json> tree;         // one of the two
    std::shared_ptr<const std::string> text;  // as DumpJson writes it
  };

  static std::shared_ptr<const Json> TreeOf(const Entry& entry);
  Entry MakeEntry(Json object) const;
  bool PutNewer(Json object, bool listed);
  void Bury(const std::string& uid);
  void Note(const ObjectName& name);

  const Storage storage_;
  mutable std::mutex mutex_;
  std::map<ObjectName, Entry> objects_;
  std::set<std::string> buried_;
  std::deque<std::string> burials_;  // oldest first
  std::deque<ObjectName> changes_;   // the newest ones, oldest first
  uint64_t change_count_ = 1;        // of all; 1 = none yet
};

}  // namespace lambdadnn
