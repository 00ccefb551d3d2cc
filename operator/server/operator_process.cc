// SPDX-License-Identifier: Apache-2.0
#include "operator/server/operator_process.h"

#include "common/base/files.h"
#include "common/telemetry/log.h"
#include "operator/api/platform_file.h"
#include "operator/backends/beast_slice_client.h"
#include "operator/backends/local/local_backend.h"
#include "operator/backends/local/local_platform.h"
#include "operator/controller/controller.h"
#include "operator/controller/store_access.h"
#include "operator/kube/http_kube_client.h"

namespace lambdadnn {

Result<KubeConnection> ConnectionOf(const OperatorOptions& options) {
  const auto host = GetEnvironment("KUBERNETES_SERVICE_HOST");
  if (options.kubeconfig.empty() && options.context.empty() && host.has_value()) {
    return InClusterConnection(host, GetEnvironment("KUBERNETES_SERVICE_PORT"));
  }
  return LoadKubeconfig(
      KubeconfigFiles(options.kubeconfig, GetEnvironment("KUBECONFIG"), GetEnvironment("HOME")),
      options.context);
}

struct OperatorProcess::State {
  State(Runtime& of, OperatorOptions with) : runtime(of), options(std::move(with)) {}

  Runtime& runtime;
  const OperatorOptions options;
  Platform platform;
  std::unique_ptr<HttpKubeClient> kube;
  std::unique_ptr<LocalBackend> backend;
  std::unique_ptr<BeastSliceClient> slices;
  std::unique_ptr<Controller> controller;
};

OperatorProcess::OperatorProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}

OperatorProcess::~OperatorProcess() { Stop(); }

Result<std::unique_ptr<OperatorProcess>> OperatorProcess::Start(Runtime& runtime,
                                                                const OperatorOptions& options) {
  LDNN_RETURN_IF_ERROR(options.Validate());
  auto state = std::make_unique<State>(runtime, options);
  if (options.platform_file.empty()) {
    state->platform = LocalPlatform(MeasureMachine());
  } else {
    LDNN_ASSIGN_OR_RETURN(state->platform, ReadPlatform(options.platform_file));
  }
  LDNN_ASSIGN_OR_RETURN(const KubeConnection connection, ConnectionOf(options));
  state->kube = std::make_unique<HttpKubeClient>(connection, runtime);
  Result<std::unique_ptr<LocalBackend>> backend =
      LocalBackend::Connect(runtime, options.host_socket);
  if (!backend.ok()) return backend.status().WithContext("--host-socket " + options.host_socket);
  state->backend = std::move(*backend);
  state->slices = std::make_unique<BeastSliceClient>(runtime);

  ControllerOptions controller;
  controller.platform = state->platform;
  controller.workers = options.workers;
  const std::string ca_file = options.store_ca_file;
  const ControllerDependencies dependencies{runtime,
                                            *state->kube,
                                            *state->backend,
                                            *state->slices,
                                            [ca_file, &runtime](const StoreReference& reference) {
                                              return OpenJobStore(reference, ca_file, runtime);
                                            },
                                            StoreEnvironment(ca_file)};
  state->controller = std::make_unique<Controller>(dependencies, controller);
  state->controller->Start(options.namespace_name);
  LogInfo("operator", "started", {{"server", connection.server}});
  return std::unique_ptr<OperatorProcess>(new OperatorProcess(std::move(state)));
}

void OperatorProcess::Stop() {
  if (state_->controller != nullptr) state_->controller->Stop();
}

}  // namespace lambdadnn
