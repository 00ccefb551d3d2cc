// SPDX-License-Identifier: Apache-2.0
// The newest version of every job that this process has seen, fed by list, watch and its own
// writes. Never goes back: an older resourceVersion of the same object does not replace a newer one
// (both are whole numbers on every API server in use; otherwise the later call wins). Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "operator/kube/kube_client.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {

std::string UidOf(const Json& object);
std::string ResourceVersionOf(const Json& object);

class JobCache {
 public:
  // Returns whether the object is news.
  bool Put(Json object);
  // The object was deleted, at its last resourceVersion.
  void Remove(const Json& object);
  // The server says that there is no such object.
  void Remove(const ObjectName& name);
  // Null when there is none. The same version is the same pointer.
  std::shared_ptr<const Json> Get(const ObjectName& name) const;
  // After a list: everything else is gone. Returns all names, before and after.
  std::vector<ObjectName> Replace(std::vector<Json> objects);

 private:
  mutable std::mutex mutex_;
  std::map<ObjectName, std::shared_ptr<const Json>> objects_;
};

}  // namespace lambdadnn
