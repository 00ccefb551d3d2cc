// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/network_peers.h"

namespace lambdadnn {
namespace {

void CheckPeer(const Json& peer, const std::string& path, std::vector<FieldError>* errors) {
  if (!peer.is_object() || peer.empty()) {
    errors->push_back({path, "must be podSelector, namespaceSelector or ipBlock"});
    return;
  }
  for (const auto& [name, value] : peer.items()) {
    const bool known = name == "podSelector" || name == "namespaceSelector" || name == "ipBlock";
    if (!known || !value.is_object()) {
      errors->push_back({path + "." + name,
                         "is no peer of a NetworkPolicy; write podSelector, namespaceSelector or "
                         "ipBlock"});
    }
  }
}

}  // namespace

void CheckPeers(const Json& peers, const std::string& path, std::vector<FieldError>* errors) {
  if (!peers.is_array()) {
    errors->push_back({path, "must be a list of peers of a NetworkPolicy"});
    return;
  }
  for (size_t i = 0; i < peers.size(); ++i) {
    CheckPeer(peers[i], path + "[" + std::to_string(i) + "]", errors);
  }
}

void TakePeers(JsonReader* reader, const char* name, Json* out, std::vector<FieldError>* errors) {
  const Json* value = reader->Child(name);
  if (value == nullptr) return;
  CheckPeers(*value, reader->PathOf(name), errors);
  *out = *value;
}

}  // namespace lambdadnn
