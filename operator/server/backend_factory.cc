// SPDX-License-Identifier: Apache-2.0
#include "operator/server/backend_factory.h"

#include <algorithm>
#include <array>

#include "common/base/text.h"
#include "operator/backends/knative/knative_backend.h"
#include "operator/backends/local/local_backend.h"
#include "operator/resources/network_policy.h"

namespace lambdadnn {
namespace {

using Level = CheckFinding::Level;

Result<OpenedBackend> OpenKnative(const BackendEnvironment& environment) {
  const OperatorOptions& options = environment.options;
  KnativeBackend::Options with{
      .services = {.worker_image = options.worker_image, .server_image = options.server_image},
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

std::vector<CheckFinding> CheckKnative(Runtime&, const OperatorOptions& options) {
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
  return opened;
}

std::vector<CheckFinding> CheckLocal(Runtime& runtime, const OperatorOptions& options) {
  const std::string& socket = options.host_socket;
  const auto backend = LocalBackend::Connect(runtime, socket);
  if (!backend.ok()) return {{Level::kMissing, "function host", backend.status().message()}};
  return {{Level::kGood, "function host",
           "answers on " + socket + ", isolation: " + (*backend)->IsolationName()}};
}

const std::array<BackendFactory, 2>& Factories() {
  static const std::array<BackendFactory, 2> factories = {{
      {.kind = BackendKind::kLocal,
       .needs_host_socket = true,
       .open = OpenLocal,
       .check = CheckLocal},
      {.kind = BackendKind::kKnative,
       .needs_platform_file = true,
       .knative_objects = true,
       .open = OpenKnative,
       .check = CheckKnative},
  }};
  return factories;
}

// "Local or Knative"; with pods: those whose functions are pods alone.
std::string NamesToChoose(bool with_pods) {
  std::vector<std::string> names;
  for (const BackendFactory& factory : Factories()) {
    if (with_pods && !CapabilitiesOf(factory.kind).pods) continue;
    names.push_back(BackendName(factory.kind));
  }
  return Join(names, " or ");
}

Status NotAvailable(const std::string& name) {
  return InvalidArgumentError("--backend: " + name + " is not available in this release; use " +
                              NamesToChoose(false));
}

Status OfPodsAlone(const char* flag, const char* what) {
  return InvalidArgumentError(std::string(flag) + ": " + what + ", which the backend " +
                              NamesToChoose(true) + " alone has; leave it away");
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
  if (CapabilitiesOf(options.backend).pods) return OkStatus();
  if (!options.network_policies_file.empty()) {
    return OfPodsAlone("--network-policies", "bounds pods");
  }
  if (!options.image_pull_secrets.empty()) {
    return OfPodsAlone("--image-pull-secrets", "is for pods");
  }
  return OkStatus();
}

}  // namespace lambdadnn
