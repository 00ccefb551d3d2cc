// SPDX-License-Identifier: Apache-2.0
// A cluster in one process: the API server in memory (its state in a file), the controller that a
// real cluster would have, and function processes on this machine. All of it ends with this object,
// functions included; the state file and the store stay, so that another object can continue.
#pragma once

#include <memory>
#include <string>

#include "operator/backends/beast_slice_client.h"
#include "operator/backends/local/local_backend.h"
#include "operator/controller/loop/controller.h"
#include "operator/kube/in_memory_api_server.h"

namespace lambdadnn {

struct EmbeddedClusterOptions {
  std::string directory;  // of the run: state.json, logs/
  std::string program;    // the `lambdadnn` executable
  Platform platform;
  std::string ca_file;
  bool use_cgroups = true;
  Duration idle{};  // since the run that is restored ended
  decltype(ControllerDependencies::measurements) measurements = nullptr;
  ControllerObserver* observer = nullptr;
};

class EmbeddedCluster {
 public:
  // With `restore`, the state of an earlier run in the same directory; kNotFound if there is none.
  static Result<std::unique_ptr<EmbeddedCluster>> Start(Runtime& runtime,
                                                        const EmbeddedClusterOptions& options,
                                                        bool restore);
  ~EmbeddedCluster();
  EmbeddedCluster(const EmbeddedCluster&) = delete;
  EmbeddedCluster& operator=(const EmbeddedCluster&) = delete;

  void StartController();
  KubeClient& kube() { return server_; }
  LocalBackend& backend() { return *backend_; }
  // The one job of this cluster; kNotFound when there is none.
  Result<Json> OnlyJob();

 private:
  EmbeddedCluster(Runtime& runtime, const EmbeddedClusterOptions& options);

  Runtime& runtime_;
  const EmbeddedClusterOptions options_;
  InMemoryApiServer server_;
  std::unique_ptr<LocalBackend> backend_;
  std::unique_ptr<BeastSliceClient> slices_;
  std::unique_ptr<EventRecorder> recorder_;
  std::unique_ptr<Controller> controller_;
};

}  // namespace lambdadnn
