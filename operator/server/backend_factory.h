// SPDX-License-Identifier: Apache-2.0
// Opens the backend that --backend names: one row per backend of this release, with the flags that
// it needs and the checks of --check. api/backend_kind.h has the capabilities.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/api/backend_kind.h"
#include "operator/backends/cluster_bound.h"
#include "operator/backends/function_backend.h"
#include "operator/kube/event_recorder.h"
#include "operator/kube/kube_client.h"
#include "operator/resources/store_endpoints.h"
#include "operator/server/access_check.h"
#include "operator/server/operator_options.h"

namespace lambdadnn {

// What a backend is opened with; all outlive it but the options.
struct BackendEnvironment {
  const OperatorOptions& options;
  Runtime& runtime;
  Runtime& server_runtime;  // by the API server's clock
  KubeClient& kube;
  // A server-side dry run of a create.
  std::function<Result<Json>(const ResourceType&, const Json&)> try_create;
  std::function<void(EventDraft)> record_event;
  // As --store-endpoints has it; absent = jobs may name every store.
  std::optional<StoreEndpoints> store_endpoints = {};
};

struct OpenedBackend {
  std::unique_ptr<FunctionBackend> backend;
  ClusterBound* cluster = nullptr;  // the same, where the cluster limits plans
  double most_memory_mib = 0;       // no plan needs more than that; 0 = nothing is known
  std::optional<double> gpus = {};  // of all functions together; absent = not known
  PodResources sidecar = {};        // requested next to each function in its pod
};

struct BackendFactory {
  BackendKind kind;
  bool needs_platform_file = false;  // --platform: there is no machine to measure
  bool needs_host_socket = false;    // --host-socket
  bool needs_gateway = false;        // --openfaas-gateway
  // Its functions are objects of Knative: the operator needs rights on them, and deletes them
  // before it is uninstalled.
  bool knative_objects = false;
  Result<OpenedBackend> (*open)(const BackendEnvironment& environment) = nullptr;
  // Additional checks of --check.
  std::vector<CheckFinding> (*check)(KubeClient& kube, Runtime& runtime,
                                     const OperatorOptions& options) = nullptr;
  // What deletes the functions of a job that its operator has left, without it; null = the API
  // server has them. `runtime` outlives the result.
  Result<std::function<Status(const JobIdentity& job)>> (*release)(
      Runtime& runtime, const OperatorOptions& options) = nullptr;
};

// Null: this release has none of this kind.
const BackendFactory* FindBackendFactory(BackendKind kind);
// The kind that --backend names; kInvalidArgument when there is none to be had.
Result<BackendKind> ParseBackend(const std::string& name);
// Whether this release has the backend, and the flags are those that it needs. kInvalidArgument
// names the flag.
Status CheckBackendFlags(const OperatorOptions& options);

}  // namespace lambdadnn
