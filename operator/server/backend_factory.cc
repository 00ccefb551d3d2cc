// SPDX-License-Identifier: Apache-2.0
#include "operator/server/backend_factory.h"

#include <algorithm>
#include <array>

#include "common/base/text.h"
#include "operator/backends/knative/knative_backend.h"
#include "operator/backends/local/local_backend.h"
#include "operator/backends/openfaas/openfaas_backend.h"
#include "operator/resources/network_policy.h"
#include "operator/server/openfaas_check.h"

namespace lambdadnn {
namespace {

using Level = CheckFinding::Level;

Result<OpenedBackend> OpenKnative(const BackendEnvironment& environment) {
  const OperatorOptions& options = environment.options;
  KnativeBackend::Options with{.services = {.images = {options.worker_image, options.server_image,
                                                       options.worker_gpu_image}},
                               .namespaces = options.namespaces,
                               .pull_secrets = options.image_pull_secrets};
  if (!options.network_policies_file.empty()) {
    Result<JobNetworkOptions> network = ReadJobNetworkOptions(options.network_policies_file);
    if (!network.ok()) return network.status().WithContext("--network-policies");
    with.network = *std::move(network);
    with.network->endpoints = environment.store_endpoints;
  }
  with.try_create = environment.try_create;
  with.record_event = environment.record_event;
  const PodResources sidecar = SidecarOf(with.services);
  auto backend = std::make_unique<KnativeBackend>(environment.kube, environment.server_runtime,
                                                  std::move(with));
  OpenedBackend opened;
  opened.cluster = backend.get();
  opened.backend = std::move(backend);
  opened.sidecar = sidecar;
  return opened;
}

std::vector<CheckFinding> CheckKnative(KubeClient&, Runtime&, const OperatorOptions& options) {
  std::vector<CheckFinding> findings;
  if (options.network_policies_file.empty()) {  // else it has a check of its own
    findings.push_back({Level::kWarning, "network policies",
                        "none are made without --network-policies: jobs reach each other's "
                        "functions, and functions reach everything"});
  }
  if (!options.function_tls) {
    findings.push_back({Level::kWarning, "TLS to functions",
                        "off (--no-function-tls): keys of jobs and credentials of slices cross the "
                        "cluster in plain text unless a mesh encrypts it"});
  }
  return findings;
}

Result<OpenedBackend> OpenLocal(const BackendEnvironment& environment) {
  const std::string& socket = environment.options.host_socket;
  Result<std::unique_ptr<LocalBackend>> connected =
      LocalBackend::Connect(environment.runtime, socket);
  if (!connected.ok()) return connected.status().WithContext("--host-socket " + socket);
  LDNN_ASSIGN_OR_RETURN(const FunctionCapacity capacity, (*connected)->Capacity());
  OpenedBackend opened;
  opened.backend = *std::move(connected);
  opened.most_memory_mib = static_cast<double>(capacity.memory_mib);
  opened.gpus = static_cast<double>(capacity.gpus);
  return opened;
}

std::vector<CheckFinding> CheckLocal(KubeClient&, Runtime& runtime,
                                     const OperatorOptions& options) {
  const std::string& socket = options.host_socket;
  const auto backend = LocalBackend::Connect(runtime, socket);
  if (!backend.ok()) return {{Level::kMissing, "function host", backend.status().message()}};
  return {{Level::kGood, "function host",
           "answers on " + socket + ", isolation: " + (*backend)->IsolationName()}};
}

// kInvalidArgument names the flag.
Result<OpenFaasGateway::Options> GatewayOptionsOf(const OperatorOptions& options) {
  Result<Endpoint> endpoint = ParseEndpoint(options.openfaas_gateway);
  if (!endpoint.ok()) return endpoint.status().WithContext("--openfaas-gateway");
  if (endpoint->scheme != "http" || !endpoint->user_info.empty()) {
    return InvalidArgumentError("--openfaas-gateway: '" + options.openfaas_gateway +
                                "' is no URL of a gateway within the cluster; write "
                                "http://HOST:PORT, and give credentials by --openfaas-auth-dir");
  }
  return OpenFaasGateway::Options{.endpoint = *std::move(endpoint),
                                  .auth_folder = options.openfaas_auth_dir,
                                  .function_namespace = options.openfaas_namespace};
}

OpenFaasPlace PlaceOf(const OperatorOptions& options) {
  return {.function_namespace = options.openfaas_namespace,
          .gateway_namespace = options.openfaas_gateway_namespace,
          .max_functions = options.openfaas_max_functions,
          .timeout_seconds = options.openfaas_timeout_seconds};
}

Result<OpenedBackend> OpenOpenFaas(const BackendEnvironment& environment) {
  const OperatorOptions& options = environment.options;
  OpenFaasBackend::Options with;
  LDNN_ASSIGN_OR_RETURN(with.gateway, GatewayOptionsOf(options));
  with.functions = {.images = {options.worker_image, options.server_image},
                    .function_namespace = options.openfaas_namespace,
                    .pull_secrets = options.image_pull_secrets};
  with.place = PlaceOf(options);
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<HttpTransport> transport, NewHttpTransport({}));
  auto backend = std::make_unique<OpenFaasBackend>(environment.kube, environment.server_runtime,
                                                   std::move(transport), std::move(with));
  OpenedBackend opened;
  opened.cluster = backend.get();
  opened.backend = std::move(backend);
  return opened;
}

std::vector<CheckFinding> CheckOpenFaas(KubeClient& kube, Runtime&,
                                        const OperatorOptions& options) {
  const std::string& subject = BackendName(BackendKind::kOpenFaas);
  const Result<OpenFaasGateway::Options> with = GatewayOptionsOf(options);
  if (!with.ok()) return {{Level::kMissing, subject, with.status().message()}};
  const Result<std::unique_ptr<HttpTransport>> transport = NewHttpTransport({});
  if (!transport.ok()) return {{Level::kMissing, subject, transport.status().message()}};
  OpenFaasGateway gateway(**transport, *with);
  std::vector<CheckFinding> findings = CheckGateway(gateway, options.openfaas_max_functions);
  const Result<ClusterLimits> limits = ReadOpenFaasLimits(kube, PlaceOf(options));
  findings.push_back(limits.ok()
                         ? CheckTimeouts(*limits)
                         : CheckFinding{Level::kMissing, subject, limits.status().message()});
  return findings;
}

Result<std::function<Status(const JobIdentity&)>> ReleaseOpenFaas(Runtime& runtime,
                                                                  const OperatorOptions& options) {
  LDNN_ASSIGN_OR_RETURN(OpenFaasGateway::Options with, GatewayOptionsOf(options));
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<HttpTransport> made, NewHttpTransport({}));
  const std::shared_ptr<HttpTransport> transport = std::move(made);
  return std::function<Status(const JobIdentity&)>(
      [&runtime, transport, with = std::move(with)](const JobIdentity& job) {
        OpenFaasGateway gateway(*transport, with);
        FunctionTable table(gateway, runtime.clock, 0);
        return FunctionWriter(runtime.executor, gateway, table, {}).Delete(job, "");
      });
}

const std::array<BackendFactory, 3>& Factories() {
  static const std::array<BackendFactory, 3> factories = {{
      {.kind = BackendKind::kLocal,
       .needs_host_socket = true,
       .open = OpenLocal,
       .check = CheckLocal},
      {.kind = BackendKind::kKnative,
       .needs_platform_file = true,
       .knative_objects = true,
       .open = OpenKnative,
       .check = CheckKnative},
      {.kind = BackendKind::kOpenFaas,
       .needs_platform_file = true,
       .needs_gateway = true,
       .open = OpenOpenFaas,
       .check = CheckOpenFaas,
       .release = ReleaseOpenFaas},
  }};
  return factories;
}

// "Local or Knative or OpenFaaS", of those that can this.
std::string NamesToChoose(bool (*can)(const BackendCapabilities&)) {
  std::vector<std::string> names;
  for (const BackendFactory& factory : Factories()) {
    if (can(CapabilitiesOf(factory.kind))) names.push_back(BackendName(factory.kind));
  }
  return Join(names, " or ");
}

Status NotAvailable(const std::string& name) {
  return InvalidArgumentError("--backend: " + name + " is not available in this release; use " +
                              NamesToChoose([](const BackendCapabilities&) { return true; }));
}

Status OfBackendAlone(const char* flag, const char* what, bool (*can)(const BackendCapabilities&)) {
  return InvalidArgumentError(std::string(flag) + ": " + what + ", which the backend " +
                              NamesToChoose(can) + " alone has; leave it away");
}

}  // namespace

const BackendFactory* FindBackendFactory(BackendKind kind) {
  const auto found =
      std::find_if(Factories().begin(), Factories().end(),
                   [kind](const BackendFactory& factory) { return factory.kind == kind; });
  return found == Factories().end() ? nullptr : &*found;
}

Result<BackendKind> ParseBackend(const std::string& name) {
  const std::optional<BackendKind> kind = FindBackend(name);
  if (!kind.has_value() || FindBackendFactory(*kind) == nullptr) return NotAvailable(name);
  return *kind;
}

Status CheckBackendFlags(const OperatorOptions& options) {
  const std::string& name = BackendName(options.backend);
  const BackendFactory* factory = FindBackendFactory(options.backend);
  if (factory == nullptr) return NotAvailable(name);
  if (factory->needs_platform_file && options.platform_file.empty()) {
    return InvalidArgumentError("--platform: the backend " + name +
                                " needs the prices and sizes of its functions in a file "
                                "(docs/formats.md)");
  }
  if (factory->needs_host_socket && options.host_socket.empty()) {
    return InvalidArgumentError("--host-socket: the backend " + name +
                                " needs the socket of a function host; start one with: lambdadnn "
                                "host --socket SOCKET --dir FOLDER");
  }
  if (factory->needs_gateway) {
    if (options.openfaas_gateway.empty()) {
      return InvalidArgumentError("--openfaas-gateway: the backend " + name +
                                  " needs the URL of its gateway, such as "
                                  "http://gateway.openfaas:8080");
    }
    LDNN_RETURN_IF_ERROR(GatewayOptionsOf(options).status());
    if (options.openfaas_namespace.empty()) {
      return InvalidArgumentError("--openfaas-namespace: names no namespace");
    }
    if (options.openfaas_max_functions < 0) {
      return InvalidArgumentError("--openfaas-max-functions: must be 0 or more");
    }
    if (!(options.openfaas_timeout_seconds >= 0)) {
      return InvalidArgumentError("--openfaas-timeout-seconds: must be 0 or more");
    }
  } else if (!options.openfaas_gateway.empty()) {
    return InvalidArgumentError("--openfaas-gateway: is for the backend " +
                                BackendName(BackendKind::kOpenFaas) + "; leave it away");
  }
  if (CapabilitiesOf(options.backend).isolates_jobs) return OkStatus();
  if (!options.network_policies_file.empty()) {
    return OfBackendAlone("--network-policies", "bounds pods",
                          [](const BackendCapabilities& each) { return each.isolates_jobs; });
  }
  if (!options.image_pull_secrets.empty() && !CapabilitiesOf(options.backend).pods) {
    return OfBackendAlone("--image-pull-secrets", "is for pods",
                          [](const BackendCapabilities& each) { return each.pods; });
  }
  return OkStatus();
}

}  // namespace lambdadnn
