// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/network_policy.h"

#include "common/base/endpoint.h"
#include "common/json/yaml_file.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_account.h"
#include "operator/resources/job_children.h"
#include "operator/resources/network_peers.h"

namespace lambdadnn {
namespace {

constexpr const char* kEndpointVariable = "LAMBDADNN_S3_ENDPOINT";
constexpr int kHttpsPort = 443;
constexpr int kNamesPort = 53;
// Of queue-proxy: requests, the same with TLS inside the cluster, probes and draining, figures for
// the autoscaler.
constexpr int kRequests = 8012;
constexpr int kTlsRequests = 8112;
constexpr int kAdministration = 8022;
constexpr int kScaling = 9090;

Json Ports(std::initializer_list<int> ports, const char* protocol = "TCP") {
  Json list = Json::array();
  for (const int port : ports) list.push_back({{"port", port}, {"protocol", protocol}});
  return list;
}

// No rule without peers: it would admit everything.
void AdmitFrom(const Json& peers, const Json& ports, Json* rules) {
  if (!peers.empty()) rules->push_back({{"from", peers}, {"ports", ports}});
}

// The other pods of the job.
Json PeersOfJob(const FunctionGroup& group) {
  return Json::array({{{"podSelector", {{"matchLabels", {{kJobUidLabel, group.job_uid}}}}}}});
}

void Append(const Json& rules, Json* to) {
  for (const Json& rule : rules) to->push_back(rule);
}

std::string EndpointOf(const FunctionGroup& group) {
  const auto found = group.environment.find(kEndpointVariable);
  return found == group.environment.end() ? "" : found->second;
}

Json StoreRules(const FunctionGroup& group, const JobNetworkOptions& options) {
  if (!options.store.empty()) return options.store;
  if (options.endpoints.has_value()) return options.endpoints->Egress(EndpointOf(group));
  return Json::array({{{"ports", Ports({StorePort(group)})}}});
}

// --- Reading.

// As the API server would store it: a list that is empty is none, a port is one of TCP.
void CheckRule(const std::string& peers, const std::string& path, Json* rule,
               std::vector<FieldError>* errors) {
  if (!rule->is_object()) {
    errors->push_back({path, "must be a rule of a NetworkPolicy"});
    return;
  }
  for (const auto& [name, value] : rule->items()) {
    if (name == peers) {
      CheckPeers(value, path + "." + name, errors);
    } else if (name != "ports" || !value.is_array()) {
      errors->push_back({path + "." + name, "is no field of this rule; write " + peers +
                                                " and ports, which are lists"});
    }
  }
  for (const std::string& name : {peers, std::string("ports")}) {
    if (rule->contains(name) && (*rule)[name].empty()) rule->erase(name);
  }
  if (!rule->contains("ports") || !(*rule)["ports"].is_array()) return;
  for (Json& port : (*rule)["ports"]) {
    if (port.is_object() && !port.contains("protocol")) port["protocol"] = "TCP";
  }
}

void TakeRules(JsonReader* reader, const char* name, const char* peers, Json* out,
               std::vector<FieldError>* errors) {
  const Json* value = reader->Child(name);
  if (value == nullptr) return;
  *out = *value;
  if (!out->is_array()) {
    reader->Report(name, "must be a list of rules of a NetworkPolicy");
    return;
  }
  for (size_t i = 0; i < out->size(); ++i) {
    CheckRule(peers, reader->PathOf(name) + "[" + std::to_string(i) + "]", &(*out)[i], errors);
  }
}

}  // namespace

Json JobNetworkOptions::DefaultKnative() {
  return Json::array(
      {{{"namespaceSelector",
         {{"matchLabels", {{"kubernetes.io/metadata.name", "knative-serving"}}}}},
        {"podSelector",
         {{"matchExpressions",
           Json::array({{{"key", "app"},
                         {"operator", "In"},
                         {"values", Json::array({"activator", "autoscaler"})}}})}}}}});
}

Result<JobNetworkOptions> JobNetworkOptionsFromJson(const Json& json) {
  JobNetworkOptions options;
  std::vector<FieldError> errors;
  JsonReader reader(json, "", &errors);
  TakePeers(&reader, "operators", &options.operators, &errors);
  TakePeers(&reader, "knative", &options.knative, &errors);
  TakePeers(&reader, "gateways", &options.gateways, &errors);
  TakePeers(&reader, "names", &options.names, &errors);
  TakeRules(&reader, "store", "to", &options.store, &errors);
  TakeRules(&reader, "extraIngress", "from", &options.extra_ingress, &errors);
  TakeRules(&reader, "extraEgress", "to", &options.extra_egress, &errors);
  reader.Finish();
  if (errors.empty() && options.operators.empty()) {
    errors.push_back({"operators",
                      "must name the operator's own pods or address: functions that it cannot "
                      "reach do nothing"});
  }
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return options;
}

Result<JobNetworkOptions> ReadJobNetworkOptions(const std::string& file) {
  return ReadYamlFileAs(file, JobNetworkOptionsFromJson);
}

int StorePort(const FunctionGroup& group) {
  const std::string text = EndpointOf(group);
  if (text.empty()) return kHttpsPort;
  // Of what is no endpoint no store opens, so that any port will do.
  const Result<Endpoint> endpoint = ParseEndpoint(text);
  return endpoint.ok() ? endpoint->PortOrUsual() : kHttpsPort;
}

Json JobNetworkPolicy(const FunctionGroup& group, const JobNetworkOptions& options) {
  Json ingress = Json::array();
  // Of all groups of the job alike, since they share the policy.
  ingress.push_back({{"from", PeersOfJob(group)}, {"ports", Ports({kPeerPort})}});
  // Queue-proxy's as well: functions of the job that an earlier operator started have it alone.
  AdmitFrom(options.operators,
            ServesTls(group) ? Ports({kRequests, kFunctionTlsPort}) : Ports({kRequests}), &ingress);
  AdmitFrom(options.knative, Ports({kRequests, kTlsRequests, kAdministration, kScaling}), &ingress);
  AdmitFrom(options.gateways, Ports({kRequests, kTlsRequests}), &ingress);
  Append(options.extra_ingress, &ingress);
  Json egress = Json::array();
  egress.push_back({{"to", PeersOfJob(group)}, {"ports", Ports({kPeerPort})}});
  Json names = {{"ports", Ports({kNamesPort}, "UDP")}};
  names["ports"].push_back(Ports({kNamesPort})[0]);
  if (!options.names.empty()) names["to"] = options.names;
  egress.push_back(std::move(names));
  Append(StoreRules(group, options), &egress);
  Append(options.extra_egress, &egress);
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata",
           {{"name", JobChildName(group.job_name)},
            {"namespace", group.namespace_name},
            {"labels", ChildLabels(group.job_name, group.job_uid)},
            {"ownerReferences", OwnerReferences(group.job_name, group.job_uid)}}},
          {"spec",
           {{"podSelector", {{"matchLabels", {{kJobUidLabel, group.job_uid}}}}},
            {"policyTypes", Json::array({"Ingress", "Egress"})},
            {"ingress", std::move(ingress)},
            {"egress", std::move(egress)}}}};
}

}  // namespace lambdadnn
