// SPDX-License-Identifier: Apache-2.0
#include "operator/server/operator_check.h"

#include "common/base/check.h"
#include "operator/api/platform_file.h"
#include "operator/controller/store/store_access.h"
#include "operator/kube/http_kube_client.h"
#include "operator/resources/network_policy.h"
#include "operator/server/backend_factory.h"
#include "operator/server/operator_process.h"

namespace lambdadnn {
namespace {

using Level = CheckFinding::Level;

// A person waits for the answers.
constexpr double kCallSeconds = 10;

// Of a file that a flag names.
CheckFinding OfFile(const char* name, const Status& read, const std::string& good) {
  if (read.ok()) return {Level::kGood, name, good};
  return {Level::kMissing, name, read.message()};
}

CheckFinding CheckPlatform(const std::string& file, WallTime now) {
  return OfFile("platform", ReadPlatform(file, now).status(), file + " can be read");
}

CheckFinding CheckNetworkPolicies(const std::string& file) {
  return OfFile("network policies", ReadJobNetworkOptions(file).status(),
                file + " can be read; whether they are enforced is up to the cluster's network");
}

CheckFinding CheckStoreEndpoints(const OperatorOptions& options) {
  const auto endpoints = StoreEndpointsOf(options);
  return OfFile(
      "store endpoints", endpoints.status(),
      endpoints.ok() ? "jobs may name beside the operator's own: " + (*endpoints)->Text() : "");
}

CheckFinding CheckPodRules(const OperatorOptions& options) {
  return OfFile("pod rules", PodRulesOf(options).status(), options.pod_rules_file + " can be read");
}

CheckFinding CheckNamedStore(Runtime& runtime, const OperatorOptions& options,
                             const std::string& uri) {
  return CheckStore(runtime, OpenJobStore(OwnStoreReference(uri), {}, options.store_ca_file,
                                          runtime, kCallSeconds));
}

}  // namespace

Result<std::vector<CheckFinding>> CheckEnvironment(Runtime& runtime,
                                                   const OperatorOptions& options) {
  LDNN_ASSIGN_OR_RETURN(const KubeConnection connection, ConnectionOf(options));
  HttpKubeClient kube(connection, runtime,
                      {.user_agent = "lambdadnn-operator/check",
                       .call_inactivity_seconds = kCallSeconds,
                       .call_total_seconds = kCallSeconds,
                       .max_attempts = 1});
  const BackendFactory* backend = FindBackendFactory(options.backend);
  LDNN_CHECK(backend != nullptr, "the options are valid");
  AccessCheckOptions access{.namespaces = options.namespaces, .knative = backend->knative_objects};
  if (backend->needs_gateway) {
    access.openfaas_namespace = options.openfaas_namespace;
    access.openfaas_gateway_namespace = options.openfaas_gateway_namespace;
  }
  if (options.leader_elect) access.lease_namespace = LeaseNamespace(options, connection);
  std::vector<CheckFinding> findings = CheckCluster(kube, access);
  for (CheckFinding& finding : backend->check(kube, runtime, options)) {
    findings.push_back(std::move(finding));
  }
  if (!options.network_policies_file.empty()) {
    findings.push_back(CheckNetworkPolicies(options.network_policies_file));
  }
  if (!options.store_endpoints_file.empty()) findings.push_back(CheckStoreEndpoints(options));
  if (!options.pod_rules_file.empty()) findings.push_back(CheckPodRules(options));
  if (!options.platform_file.empty()) {
    findings.push_back(CheckPlatform(options.platform_file, runtime.clock.Wall()));
  }
  for (const std::string& uri : {options.store, options.check_store}) {
    if (!uri.empty()) findings.push_back(CheckNamedStore(runtime, options, uri));
  }
  return findings;
}

}  // namespace lambdadnn
