// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/network_peers.h"

#include "common/base/files.h"
#include "common/json/yaml.h"

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

Result<Json> ReadOneDocument(const std::string& file) {
  const auto text = ReadFile(file);
  if (!text.ok()) return InvalidArgumentError(text.status().message());
  YamlParseResult parsed = ParseYaml(*text);
  if (parsed.error.has_value()) {
    return InvalidArgumentError(file + ":" + std::to_string(parsed.error->line) + ": " +
                                parsed.error->message);
  }
  if (parsed.documents.size() != 1) {
    return InvalidArgumentError(file + ": must hold one YAML document");
  }
  return std::move(parsed.documents.front().value);
}

}  // namespace lambdadnn
