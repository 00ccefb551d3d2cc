// SPDX-License-Identifier: Apache-2.0
// Ingress and egress of one job's pods: one networking.k8s.io/v1 NetworkPolicy per job that selects
// all its pods in both directions, so that it denies what it does not list. Pure builders.
//
// Admitted to the pods: the operator at the function's port of TLS and at queue-proxy's, Knative's
// activator and autoscaler at queue-proxy's ports, the ingress gateway where one is named, and the
// job's other pods at the port of the peer channel. Kubernetes itself admits traffic from a pod's
// own node, so the kubelet's probes need no rule. Admitted from the pods: DNS, the object store,
// the job's other pods at that port. Another policy of the namespace can only admit more.
#pragma once

#include <optional>
#include <string>

#include "common/json/json_reader.h"
#include "operator/resources/function_group.h"
#include "operator/resources/store_endpoints.h"

namespace lambdadnn {

// Lists of networking.k8s.io/v1 as the API server takes them: NetworkPolicyPeers, and rules where
// it says so.
struct JobNetworkOptions {
  Json operators = Json::array();  // the operator's own pods
  Json knative = DefaultKnative();
  Json gateways = Json::array();  // of the ingress; none = no gateway calls functions
  Json names = Json::array();     // DNS servers; none = any address at port 53
  // Egress rules to every job's store. None = as `endpoints` has it; without those any address at
  // the port of the job's store.
  Json store = Json::array();
  // Not of the file.
  std::optional<StoreEndpoints> endpoints = {};
  Json extra_ingress = Json::array();  // rules
  Json extra_egress = Json::array();   // rules

  // Activator and autoscaler in the namespace knative-serving.
  static Json DefaultKnative();
};

// From a file with these fields, all optional, e.g.
//   operators: [{podSelector: {matchLabels: {app.kubernetes.io/name: lambdadnn-operator}}}]
//   store: [{to: [{ipBlock: {cidr: 192.0.2.7/32}}], ports: [{port: 9000}]}]
// kInvalidArgument names the invalid field.
Result<JobNetworkOptions> JobNetworkOptionsFromJson(const Json& json);
Result<JobNetworkOptions> ReadJobNetworkOptions(const std::string& file);

// The policy of the job that the group is of; its name is JobChildName.
Json JobNetworkPolicy(const FunctionGroup& group, const JobNetworkOptions& options);

// Where functions of the group reach their store: the port of LAMBDADNN_S3_ENDPOINT in their
// environment, 443 without one.
int StorePort(const FunctionGroup& group);

}  // namespace lambdadnn
