// SPDX-License-Identifier: Apache-2.0
// One resource of the in-memory API server. Private to in_memory_api_server*.cc.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "operator/kube/in_memory_api_server.h"

namespace lambdadnn {

struct InMemoryApiServer::Table {
  struct Expiry {
    Instant due;
    ObjectName name;
  };
  ResourceDefinition definition;
  std::map<ObjectName, std::shared_ptr<const Json>> objects;
  std::deque<Expiry> expiries;  // in order of time; only with a time to live

  std::string Key() const { return definition.type.plural + "." + definition.type.group; }
};

// Once an object is being deleted, finalizers may go but not come.
Status CheckFinalizersOnlyShrink(const Json& current, const Json& next);

}  // namespace lambdadnn
