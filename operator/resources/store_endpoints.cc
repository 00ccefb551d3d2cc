// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/store_endpoints.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/json/json_list.h"
#include "common/json/yaml_file.h"
#include "operator/resources/network_peers.h"

namespace lambdadnn {
namespace {

constexpr int kMaxPort = 65535;
// The message of a condition must stay readable.
constexpr size_t kShownEntries = 5;
constexpr const char* kEveryHost = "*";
constexpr std::string_view kSuffix = "*.";

bool IsName(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && name.front() != '.' && name.find("..") == std::string_view::npos &&
         std::all_of(name.begin(), name.end(), is_letter);
}

bool IsOwnServer(const std::string& own, const Endpoint& endpoint) {
  const Result<Endpoint> read = ParseEndpoint(own);
  return read.ok() && IsSameServer(*read, endpoint);
}

Json PortRule(int port) {
  return {{"ports", Json::array({{{"port", port}, {"protocol", "TCP"}}})}};
}

Json RuleTo(Json peers, int port) {
  Json rule = PortRule(port);
  rule["to"] = std::move(peers);
  return rule;
}

Json PeerOf(const IpBlock& address) {
  return Json::array({{{"ipBlock", {{"cidr", address.Cidr()}}}}});
}

void TakeHost(JsonReader* reader, AllowedEndpoint* entry) {
  if (!reader->Required("host", &entry->host)) return;
  std::string& host = entry->host;
  host = LowerCase(host);
  if (host == kEveryHost) return;
  entry->block = ParseIpBlock(host);
  if (entry->block.has_value()) return;
  while (host.ends_with('.')) host.pop_back();
  const std::string name = host.starts_with(kSuffix) ? host.substr(kSuffix.size()) : host;
  // A host that programs parse as a numeric address would never be resolved as a name.
  if (IsName(name) && !AddressOfHost(name).has_value()) return;
  reader->Report("host", "'" + host +
                             "' is no host; write a name, *.example.com, an address or a range "
                             "such as 10.0.0.0/8, and the port in the field port");
}

AllowedEndpoint TakeEntry(const Json& json, const std::string& path,
                          std::vector<FieldError>* errors) {
  AllowedEndpoint entry;
  JsonReader reader(json, path, errors);
  if (!json.is_object()) return entry;
  TakeHost(&reader, &entry);
  if (reader.Optional("port", &entry.port) && (entry.port < 1 || entry.port > kMaxPort)) {
    reader.Report("port", "must be from 1 to 65535; leave it away for any");
  }
  TakePeers(&reader, "peers", &entry.peers, errors);
  reader.Finish();
  return entry;
}

}  // namespace

bool AllowedEndpoint::Matches(const Endpoint& endpoint) const {
  if (port != 0 && port != endpoint.PortOrUsual()) return false;
  if (host == kEveryHost) return true;
  const std::string named = PlainHost(endpoint);
  const std::optional<IpBlock> address = AddressOfHost(named);
  if (block.has_value()) return address.has_value() && block->Covers(*address);
  if (address.has_value()) return false;
  if (!host.starts_with(kSuffix)) return named == host;
  const std::string_view ending = std::string_view(host).substr(1);
  return named.size() > ending.size() && named.ends_with(ending);
}

bool StoreEndpoints::Allows(const Endpoint& endpoint) const {
  return IsOwnServer(own, endpoint) ||
         std::any_of(allowed.begin(), allowed.end(),
                     [&](const AllowedEndpoint& entry) { return entry.Matches(endpoint); });
}

Json StoreEndpoints::Egress(const std::string& endpoint) const {
  const Result<Endpoint> at = ParseEndpoint(endpoint);
  const bool is_own = endpoint.empty() ? own.empty() : at.ok() && IsOwnServer(own, *at);
  if (!is_own && !at.ok()) return Json::array();
  const int port = (at.ok() ? *at : Endpoint{}).PortOrUsual();
  Json peers = Json::array();
  if (is_own) {
    peers = own_peers;
  } else {
    bool listed = false;
    for (const AllowedEndpoint& entry : allowed) {
      if (!entry.Matches(*at)) continue;
      listed = true;
      peers.insert(peers.end(), entry.peers.begin(), entry.peers.end());
    }
    if (!listed) return Json::array();
  }
  if (!peers.empty()) return Json::array({RuleTo(std::move(peers), port)});
  const auto address = at.ok() ? AddressOfHost(PlainHost(*at)) : std::nullopt;
  if (address.has_value()) return Json::array({RuleTo(PeerOf(*address), port)});
  return is_own ? Json::array({PortRule(port)}) : Json::array();
}

std::string StoreEndpoints::Text() const {
  if (allowed.empty()) return "none";
  std::vector<std::string> shown;
  for (const AllowedEndpoint& entry : allowed) {
    if (shown.size() == kShownEntries) {
      shown.push_back("and " + std::to_string(allowed.size() - kShownEntries) + " more");
      break;
    }
    shown.push_back(entry.port == 0 ? entry.host
                                    : Endpoint{.host = entry.host, .port = entry.port}.Authority());
  }
  return Join(shown, ", ");
}

Result<StoreEndpoints> StoreEndpointsFromJson(const Json& json) {
  StoreEndpoints endpoints;
  std::vector<FieldError> errors;
  JsonReader reader(json, "", &errors);
  TakePeers(&reader, "peers", &endpoints.own_peers, &errors);
  if (const Json* list = reader.Child("allowedEndpoints"); list != nullptr) {
    endpoints.allowed = DecodeList(
        *list, reader.PathOf("allowedEndpoints"), &errors,
        [&](const Json& item, const std::string& path) { return TakeEntry(item, path, &errors); },
        "must be a list of {host, port, peers}");
  }
  reader.Finish();
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return endpoints;
}

Result<StoreEndpoints> ReadStoreEndpoints(const std::string& file) {
  return ReadYamlFileAs(file, StoreEndpointsFromJson);
}

}  // namespace lambdadnn
